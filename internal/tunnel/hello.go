// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Protocol is the name of the protocol in the Upgrade header of the request that becomes a tunnel.
const Protocol = "ocm-tunnel"

// versions are those that this program speaks, the best first.
var versions = []int{1}

const (
	// magic starts every Hello, so that another protocol is recognised by its first bytes.
	magic = "OCMT"
	// headLength is that of the magic and of the length of what follows, in bytes.
	headLength = len(magic) + 2
	// maxHello bounds the encoded Hello, in bytes.
	maxHello = 4 << 10
	// maxVersions, maxServes and maxText bound what is in it.
	maxVersions, maxServes, maxText = 16, 16, 253
)

// Hello is what each side says first. Unknown fields are ignored: newer versions add some.
type Hello struct {
	// Versions are those that the agent speaks. The hub leaves them out.
	Versions []int `json:"versions,omitempty"`
	// Version is the one that the hub has chosen; zero if it refuses the tunnel.
	Version int `json:"version,omitempty"`
	// Program is the version of the program that speaks, for logs.
	Program string `json:"program,omitempty"`
	// Serves names the kinds of streams that the agent serves besides those that every agent does. The
	// hub leaves it out.
	Serves []string `json:"serves,omitempty"`
	// Refused says why the hub refuses the tunnel.
	Refused string `json:"refused,omitempty"`
}

// ErrNoHello is returned for bytes that are no Hello.
var ErrNoHello = errors.New("the other side does not speak the protocol of tunnels")

// WriteHello sends a Hello.
func WriteHello(w io.Writer, h Hello) error {
	body, err := json.Marshal(h)
	if err != nil {
		return err
	}
	if len(body) > maxHello {
		return fmt.Errorf("sending the hello: it has %d bytes, more than %d", len(body), maxHello)
	}
	frame := binary.BigEndian.AppendUint16([]byte(magic), uint16(len(body)))
	_, err = w.Write(append(frame, body...))
	return err
}

// ReadHello reads a Hello and not a byte more. What is malformed is ErrNoHello; errors of the
// connection are returned as they are.
func ReadHello(r io.Reader) (Hello, error) {
	head := make([]byte, headLength)
	if _, err := io.ReadFull(r, head); err != nil {
		return Hello{}, err
	}
	length := int(binary.BigEndian.Uint16(head[len(magic):]))
	if string(head[:len(magic)]) != magic || length == 0 || length > maxHello {
		return Hello{}, ErrNoHello
	}
	body := make([]byte, length)
	if _, err := io.ReadFull(r, body); err != nil {
		return Hello{}, err
	}
	var h Hello
	if err := json.Unmarshal(body, &h); err != nil || !h.isSound() {
		return Hello{}, ErrNoHello
	}
	return h, nil
}

// isSound reports whether the Hello may be logged and compared.
func (h Hello) isSound() bool {
	invisible := func(text string) bool {
		return len(text) > maxText || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' })
	}
	return len(h.Versions) <= maxVersions && len(h.Serves) <= maxServes &&
		!slices.ContainsFunc(append([]string{h.Program, h.Refused}, h.Serves...), invisible)
}

// choose returns the best version that both sides speak; zero if there is none.
func choose(theirs []int) int {
	for _, v := range versions {
		if slices.Contains(theirs, v) {
			return v
		}
	}
	return 0
}
