// SPDX-License-Identifier: Apache-2.0

package tunnel_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/internal/tunnel"
)

func TestAHelloIsReadAsItWasWritten(t *testing.T) {
	var wire bytes.Buffer
	want := tunnel.Hello{Versions: []int{2, 1}, Program: "v1.2.3", Serves: []string{"this"}}
	require.NoError(t, tunnel.WriteHello(&wire, want))
	wire.WriteString("what follows")
	got, err := tunnel.ReadHello(&wire)
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.Equal(t, "what follows", wire.String(), "nothing beyond the hello may be read")
}

func TestWhatIsNoHelloIsRefused(t *testing.T) {
	for name, wire := range map[string]string{
		"another protocol": "GET / HTTP/1.1\r\n\r\n",
		"no length":        "OCMT\x00\x00",
		"too long":         "OCMT\x10\x01" + strings.Repeat(" ", 1<<13),
		"no JSON":          "OCMT\x00\x04none",
		"not an object":    "OCMT\x00\x02[]",
		"a terminal code":  "OCMT\x00\x18" + `{"program":"\u001b[2J00"}`[:24],
		"many versions":    "OCMT\x00\x2f" + `{"versions":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]}`[:47],
	} {
		t.Run(name, func(t *testing.T) {
			_, err := tunnel.ReadHello(strings.NewReader(wire))
			require.ErrorIs(t, err, tunnel.ErrNoHello)
		})
	}
}

func TestATooLongHelloIsNotSent(t *testing.T) {
	require.Error(t, tunnel.WriteHello(io.Discard, tunnel.Hello{Program: strings.Repeat("v", 5000)}))
}

func FuzzReadHello(f *testing.F) {
	f.Add([]byte("OCMT\x00\x02{}"))
	f.Add([]byte("OCMT\x00\x10{\"versions\":[1]}"))
	f.Add([]byte("OCMT\xff\xff"))
	f.Fuzz(func(t *testing.T, wire []byte) {
		h, err := tunnel.ReadHello(bytes.NewReader(wire))
		if err != nil {
			require.True(t, errors.Is(err, tunnel.ErrNoHello) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF), "%v", err)
			return
		}
		require.NoError(t, tunnel.WriteHello(io.Discard, h), "what was read can be sent")
	})
}
