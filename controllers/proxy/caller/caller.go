// SPDX-License-Identifier: Apache-2.0

package caller

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation"
)

// prefix comes before the names of the hub that begin with system:.
const prefix = "cluster:hub:"

// Header has the encoded Caller in a request from the hub to the agent.
const Header = "Ocm-Caller"

// Names that Kubernetes reserves.
const (
	system             = "system:"
	userAnonymous      = "system:anonymous"
	groupMasters       = "system:masters"
	groupAnonymous     = "system:unauthenticated"
	groupAuthenticated = "system:authenticated"
)

// Limits of a Caller. maxEncoded is that of the header, in bytes.
const (
	maxName, maxGroups, maxExtra = 1 << 10, 1 << 10, 64
	maxEncoded                   = 64 << 10
)

var (
	// ErrAnonymous means that a request has no user.
	ErrAnonymous = errors.New("anonymous users do not reach managed clusters: use a kubeconfig with credentials of the hub")
	// ErrRefused means that no managed cluster may act for such a user.
	ErrRefused = errors.New("the identity cannot be carried to a managed cluster")
)

// Caller is an identity: a user, or an account alone. An agent that knows no accounts finds no user
// in the latter, and refuses it.
type Caller struct {
	// Account is the name of a ServiceAccount that a ManagedServiceAccount of the cluster asks for.
	// The cluster knows its namespace.
	Account string `json:"account,omitempty"`

	User   string              `json:"user"`
	UID    string              `json:"uid,omitempty"`
	Groups []string            `json:"groups,omitempty"`
	Extra  map[string][]string `json:"extra,omitempty"`
}

// Carried returns the identity that a user of the hub has on a managed cluster.
func Carried(c Caller) (Caller, error) {
	if c.User == "" || c.User == userAnonymous || slices.Contains(c.Groups, groupAnonymous) {
		return Caller{}, ErrAnonymous
	}
	out := Caller{User: carriedName(c.User), UID: c.UID, Extra: maps.Clone(c.Extra)}
	maps.DeleteFunc(out.Extra, func(key string, _ []string) bool { return isReserved(key) })
	for _, g := range c.Groups {
		switch g {
		case groupMasters:
		case groupAuthenticated:
			out.Groups = append(out.Groups, g)
		default:
			out.Groups = append(out.Groups, carriedName(g))
		}
	}
	return out, out.check()
}

// OfAccount returns the identity of a ManagedServiceAccount.
func OfAccount(name string) (Caller, error) {
	c := Caller{Account: name}
	return c, c.check()
}

// carriedName puts the prefix also before names that have it already, so that nobody can take the
// name of another.
func carriedName(name string) string {
	if strings.HasPrefix(name, system) || strings.HasPrefix(name, prefix) {
		return prefix + name
	}
	return name
}

// isReserved reports whether an extra key describes a credential of the hub, such as the node or
// the pod that a token is bound to. Policies of the managed cluster would take it for one of its
// own.
func isReserved(key string) bool {
	domain, _, _ := strings.Cut(strings.ToLower(key), "/")
	for _, theirs := range []string{"kubernetes.io", "k8s.io"} {
		if domain == theirs || strings.HasSuffix(domain, "."+theirs) {
			return true
		}
	}
	return false
}

// check returns ErrRefused with the reason for what no hub sends.
func (c Caller) check() error {
	if c.Account != "" {
		return c.checkAccount()
	}
	switch {
	case !isName(c.User) || strings.HasPrefix(c.User, system):
		return refuse("the user name is empty, too long, not printable, or begins with %s", system)
	case len(c.UID) > maxName || !isPrintable(c.UID):
		return refuse("the UID is too long or not printable")
	case len(c.Groups) > maxGroups:
		return refuse("it has %d groups, more than %d", len(c.Groups), maxGroups)
	case len(c.Extra) > maxExtra:
		return refuse("it has %d extra keys, more than %d", len(c.Extra), maxExtra)
	}
	return c.checkLists()
}

// checkAccount is check for an account, which has no other identity besides.
func (c Caller) checkAccount() error {
	switch {
	case len(validation.IsDNS1123Subdomain(c.Account)) > 0:
		return refuse("the account has no name of a ServiceAccount")
	case c.User != "" || c.UID != "" || len(c.Groups) > 0 || len(c.Extra) > 0:
		return refuse("it names an account and a user")
	}
	return nil
}

// checkLists is check for each group and extra key.
func (c Caller) checkLists() error {
	for _, g := range c.Groups {
		if g != groupAuthenticated && (!isName(g) || strings.HasPrefix(g, system)) {
			return refuse("a group is empty, too long, not printable, or begins with %s", system)
		}
	}
	for key, values := range c.Extra {
		if !isName(key) || isReserved(key) || slices.ContainsFunc(values, func(v string) bool { return len(v) > maxName || !isPrintable(v) }) {
			return refuse("an extra key is not allowed, or its value is too long or not printable")
		}
	}
	return nil
}

func refuse(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrRefused, fmt.Sprintf(format, args...))
}

// isName reports whether the text can be a name: anything printable, without blanks around it,
// which HTTP would cut off and so make it another name.
func isName(text string) bool {
	return text != "" && len(text) <= maxName && isPrintable(text) && strings.TrimSpace(text) == text
}

// isPrintable reports whether a header can carry the text.
func isPrintable(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f })
}

// Set writes the identity to the headers of a request to the agent, and nothing else of that
// name.
func (c Caller) Set(h http.Header) error {
	raw, err := json.Marshal(c)
	if err != nil {
		return err
	}
	encoded := base64.StdEncoding.EncodeToString(raw)
	if len(encoded) > maxEncoded {
		return fmt.Errorf("%w: it has %d bytes, more than %d", ErrRefused, len(encoded), maxEncoded)
	}
	h.Set(Header, encoded)
	return nil
}

// Read returns the identity in the headers of a request from the hub. The error is ErrRefused
// with the reason.
func Read(h http.Header) (Caller, error) {
	values := h.Values(Header)
	if len(values) != 1 || len(values[0]) > maxEncoded {
		return Caller{}, fmt.Errorf("%w: the request names %d of them", ErrRefused, len(values))
	}
	raw, err := base64.StdEncoding.DecodeString(values[0])
	if err != nil {
		return Caller{}, fmt.Errorf("%w: it is not encoded as the hub does", ErrRefused)
	}
	var c Caller
	if err := json.Unmarshal(raw, &c); err != nil {
		return Caller{}, fmt.Errorf("%w: it is not encoded as the hub does", ErrRefused)
	}
	return c, c.check()
}
