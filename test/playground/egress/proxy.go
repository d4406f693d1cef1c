// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
)

const (
	// requestTimeout bounds how long the CONNECT request may take to arrive.
	requestTimeout = 10 * time.Second
	// dialTimeout bounds the connection to a local process.
	dialTimeout = 5 * time.Second
	// maxRequest bounds the request's head, in bytes.
	maxRequest = 16 << 10
)

// Resolver finds the loopback port behind an address of the playground's network. Its
// error goes to kube-apiserver, and thus to users.
type Resolver func(host string, port int) (int, error)

// Proxy answers CONNECT requests.
type Proxy struct {
	// Resolve finds the port behind an address.
	Resolve Resolver
	// Clock sets the deadline of the request's head.
	Clock clock.PassiveClock
}

// Serve answers CONNECT requests on l until ctx ends; then it closes l and all
// connections and returns nil.
func (p Proxy) Serve(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var open sync.WaitGroup
	defer open.Wait()
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	for {
		client, err := l.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			cancel()
			return fmt.Errorf("accepting egress connections: %w", err)
		}
		open.Go(func() {
			if err := p.handle(ctx, client); err != nil {
				logr.FromContextOrDiscard(ctx).V(1).Info("Egress connection ended", "cause", err.Error())
			}
		})
	}
}

// handle serves one connection from its request to its end.
func (p Proxy) handle(ctx context.Context, client net.Conn) error {
	defer client.Close()
	defer context.AfterFunc(ctx, func() { _ = client.Close() })()
	if err := client.SetReadDeadline(p.Clock.Now().Add(requestTimeout)); err != nil {
		return err
	}
	reader := bufio.NewReader(io.LimitReader(client, maxRequest))
	request, err := http.ReadRequest(reader)
	if err != nil {
		return fmt.Errorf("reading the request: %w", err)
	}
	server, status, err := p.connect(ctx, request)
	if err != nil {
		_, write := fmt.Fprintf(client, "HTTP/1.1 %d %s\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", status, oneLine(err.Error()))
		return errors.Join(err, write)
	}
	defer server.Close()
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := client.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return err
	}
	early, err := reader.Peek(reader.Buffered())
	if err != nil {
		return err
	}
	if _, err := server.Write(early); err != nil {
		return err
	}
	splice(client, server)
	return nil
}

// connect finds and dials the destination of a request. With an error, it returns the
// HTTP status to answer.
func (p Proxy) connect(ctx context.Context, request *http.Request) (net.Conn, int, error) {
	if request.Method != http.MethodConnect {
		return nil, http.StatusMethodNotAllowed, fmt.Errorf("only CONNECT is served here, not %s", request.Method)
	}
	host, text, err := net.SplitHostPort(request.Host)
	if err != nil {
		return nil, http.StatusBadRequest, err
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return nil, http.StatusBadRequest, fmt.Errorf("%q is no port", text)
	}
	local, err := p.Resolve(host, int(port))
	if err != nil {
		return nil, http.StatusServiceUnavailable, err
	}
	dialer := net.Dialer{Timeout: dialTimeout}
	server, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(local)))
	if err != nil {
		return nil, http.StatusBadGateway, fmt.Errorf("the process behind %s does not listen: %w", request.Host, err)
	}
	return server, 0, nil
}

// splice copies both ways until both directions have ended.
func splice(a, b net.Conn) {
	var both sync.WaitGroup
	both.Go(func() { copyHalf(a, b) })
	both.Go(func() { copyHalf(b, a) })
	both.Wait()
}

func copyHalf(to, from net.Conn) {
	_, _ = io.Copy(to, from) // the end of either side ends the direction
	if half, ok := to.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
}

// oneLine keeps a text from breaking out of a status line.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return ' '
		}
		return r
	}, text)
}
