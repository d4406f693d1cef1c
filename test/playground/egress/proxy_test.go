// SPDX-License-Identifier: Apache-2.0

package egress_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/test/playground/egress"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echo serves on a port and sends back what it receives, and returns the port.
func echo(t *testing.T) int {
	t.Helper()
	var config net.ListenConfig
	l, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.Copy(c, c)
			_ = c.Close()
		}
	}()
	t.Cleanup(func() {
		require.NoError(t, l.Close())
		<-done
	})
	return l.Addr().(*net.TCPAddr).Port
}

// serve runs a proxy and returns a function that connects to it.
func serve(t *testing.T, resolve egress.Resolver) func() net.Conn {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	var config net.ListenConfig
	l, err := config.Listen(t.Context(), "unix", path)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- egress.Proxy{Resolve: resolve, Clock: clock.RealClock{}}.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	return func() net.Conn {
		var dialer net.Dialer
		c, err := dialer.DialContext(t.Context(), "unix", path)
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
}

func TestAConnectionIsSplicedToWhatStandsBehindTheAddress(t *testing.T) {
	port := echo(t)
	dial := serve(t, func(host string, p int) (int, error) {
		if host == "10.96.0.7" && p == 443 {
			return port, nil
		}
		return 0, errors.New("nothing there")
	})
	c := dial()
	// Bytes sent along with the request are not lost.
	_, err := io.WriteString(c, "CONNECT 10.96.0.7:443 HTTP/1.1\r\nHost: 10.96.0.7:443\r\n\r\nearly ")
	require.NoError(t, err)
	reader := bufio.NewReader(c)
	response, err := http.ReadResponse(reader, &http.Request{Method: http.MethodConnect})
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode)
	_, err = io.WriteString(c, "late")
	require.NoError(t, err)
	require.NoError(t, c.(*net.UnixConn).CloseWrite())
	all, err := io.ReadAll(reader)
	require.NoError(t, err)
	require.Equal(t, "early late", string(all))
}

func TestWhatCannotBeReachedIsAnsweredWithTheReason(t *testing.T) {
	// A bound port on which nothing listens stays unused.
	bound, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, syscall.Close(bound)) })
	require.NoError(t, syscall.Bind(bound, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	name, err := syscall.Getsockname(bound)
	require.NoError(t, err)
	dead := name.(*syscall.SockaddrInet4).Port
	dial := serve(t, func(host string, _ int) (int, error) {
		if host == "dead" {
			return dead, nil
		}
		return 0, errors.New("service a/b has no ready endpoint\r\nEvil: yes")
	})
	for name, tc := range map[string]struct {
		request string
		status  int
		text    string
	}{
		"nothing behind it":   {"CONNECT 10.96.0.7:443", 503, "service a/b has no ready endpoint  Evil: yes"},
		"nobody listens":      {"CONNECT dead:443", 502, "does not listen"},
		"another method":      {"GET http://10.96.0.7/", 405, "only CONNECT"},
		"a port out of range": {"CONNECT 10.96.0.7:99999", 400, "is no port"},
		"no port":             {"CONNECT 10.96.0.7", 400, "missing port"},
	} {
		t.Run(name, func(t *testing.T) {
			c := dial()
			_, err := fmt.Fprintf(c, "%s HTTP/1.1\r\nHost: x\r\n\r\n", tc.request)
			require.NoError(t, err)
			response, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: http.MethodConnect})
			require.NoError(t, err)
			require.NoError(t, response.Body.Close())
			require.Equal(t, tc.status, response.StatusCode)
			require.Contains(t, response.Status, tc.text)
			require.Empty(t, response.Header.Get("Evil"))
		})
	}
}

func TestARequestWithoutEndIsCutOff(t *testing.T) {
	dial := serve(t, func(string, int) (int, error) { return 0, errors.New("unused") })
	c := dial()
	_, err := io.WriteString(c, "CONNECT x:1 HTTP/1.1\r\n")
	require.NoError(t, err)
	for range 64 {
		if _, err = fmt.Fprintf(c, "Header: %01000d\r\n", 0); err != nil {
			break // the proxy has hung up
		}
	}
	_, err = io.ReadAll(c)
	if err == nil {
		return // closed without an answer
	}
	require.ErrorContains(t, err, "reset")
}

func TestOpenConnectionsEndWithTheProxy(t *testing.T) {
	port := echo(t)
	path := filepath.Join(t.TempDir(), "s")
	var config net.ListenConfig
	l, err := config.Listen(t.Context(), "unix", path)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	resolve := func(string, int) (int, error) { return port, nil }
	go func() { ended <- egress.Proxy{Resolve: resolve, Clock: clock.RealClock{}}.Serve(ctx, l) }()
	var dialer net.Dialer
	c, err := dialer.DialContext(t.Context(), "unix", path)
	require.NoError(t, err)
	defer c.Close()
	_, err = io.WriteString(c, "CONNECT x:1 HTTP/1.1\r\nHost: x:1\r\n\r\n")
	require.NoError(t, err)
	reader := bufio.NewReader(c)
	_, err = http.ReadResponse(reader, &http.Request{Method: http.MethodConnect})
	require.NoError(t, err)
	cancel()
	require.NoError(t, <-ended)
	_, err = reader.ReadByte()
	require.Error(t, err)
}
