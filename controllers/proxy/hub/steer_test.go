// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
)

func listenLocal(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// TestConnectionsEndAtTheLeader tells who answers by the first byte.
func TestConnectionsEndAtTheLeader(t *testing.T) {
	there, gone := listenLocal(t), listenLocal(t)
	require.NoError(t, gone.Close())
	for name, tc := range map[string]struct {
		leads  bool
		leader string
		want   byte
	}{
		"this replica leads":                       {true, "", 'h'},
		"this replica leads, and another one did":  {true, there.Addr().String(), 'h'},
		"another replica leads":                    {false, there.Addr().String(), 't'},
		"nobody is known to lead":                  {false, "", 'h'},
		"the replica that leads does not answer":   {false, gone.Addr().String(), 'h'},
		"where the leader should be is no address": {false, "nowhere", 'h'},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			var running sync.WaitGroup
			l := listenLocal(t)
			here := steer(ctx, &running, steered{
				Listener: l, leads: func() bool { return tc.leads }, leader: func() string { return tc.leader }, log: logr.Discard(),
			})
			client, err := net.Dial("tcp", l.Addr().String())
			require.NoError(t, err)
			for by, from := range map[byte]net.Listener{'h': here, 't': there} {
				if by != tc.want {
					continue
				}
				server, err := from.Accept()
				require.NoError(t, err)
				_, err = server.Write([]byte{by})
				require.NoError(t, err)
				got := make([]byte, 1)
				_, err = io.ReadFull(client, got)
				require.NoError(t, err)
				require.Equal(t, tc.want, got[0])
				require.NoError(t, client.Close())
				_, err = server.Read(got)
				require.ErrorIs(t, err, io.EOF, "what ends on one side ends on the other")
				require.NoError(t, server.Close())
			}
			cancel()
			require.NoError(t, l.Close())
			running.Wait()
			_, err = here.Accept()
			require.ErrorIs(t, err, net.ErrClosed)
			_, err = here.Accept()
			require.ErrorIs(t, err, net.ErrClosed)
		})
	}
}

// TestAConnectionThatIsHandedOnEndsWithTheServer: neither side closes it.
func TestAConnectionThatIsHandedOnEndsWithTheServer(t *testing.T) {
	there, l := listenLocal(t), listenLocal(t)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	steer(ctx, &running, steered{Listener: l, leads: func() bool { return false }, leader: there.Addr().String, log: logr.Discard()})
	client, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	server, err := there.Accept()
	require.NoError(t, err)
	cancel()
	require.NoError(t, l.Close())
	running.Wait()
	for _, conn := range []net.Conn{client, server} {
		_, err := conn.Read(make([]byte, 1))
		require.Error(t, err)
	}
}

// exhausted is a listener that fails once, as where too many files are open.
type exhausted struct {
	net.Listener
	failed bool
}

func (l *exhausted) Accept() (net.Conn, error) {
	if !l.failed {
		l.failed = true
		return nil, syscall.EMFILE
	}
	return l.Listener.Accept()
}

func TestConnectionsAreAcceptedAgainAfterAFailure(t *testing.T) {
	l := listenLocal(t)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	here := steer(ctx, &running, steered{
		Listener: &exhausted{Listener: l}, leads: func() bool { return true }, leader: func() string { return "" }, log: logr.Discard(),
	})
	client, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	server, err := here.Accept()
	require.NoError(t, err)
	require.NoError(t, errors.Join(client.Close(), server.Close()))
	cancel()
	require.NoError(t, l.Close())
	running.Wait()
}
