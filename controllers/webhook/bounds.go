// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"net"
	"net/http"
	"slices"
	"sync"
)

// The port is open to every client in the cluster, and only these limits bound how much
// memory they make the process use. The length of a body counts from before it is read until
// the response is sent; a body of unknown length counts as the longest.
const (
	// maxAdmission is the longest admission review: an API server accepts objects of at most
	// 3 MiB, and a review holds two of them and the options.
	maxAdmission = 8 << 20
	// maxConversion is the longest conversion review: an API server converts stored objects
	// one by one, and lists only if they contain objects of several versions.
	maxConversion = 8 << 20
	// maxConverted is the longest object that is converted.
	maxConverted = 4 << 20
	// usualBody is the longest body of a usual review. Longer ones have a separate pool, so
	// that they delay no usual one.
	usualBody = 128 << 10
	// maxBodies is the total size of bodies in a pool; one client may use at most half of it.
	maxBodies = 4 * maxAdmission
	// maxDecoding is how many long bodies are decoded concurrently: hostile JSON takes many
	// times its length when decoded.
	maxDecoding = 2
	// maxConnections limits the open connections. One address may hold as many as it leaves free, so
	// that others cannot keep a new one out, and a single API server, which opens one for each review
	// under way, gets more than the 600 requests that it admits by default.
	maxConnections = 2048
	// maxStreams limits the concurrent requests of one connection.
	maxStreams = 64
	// maxBuffered limits the unread body bytes that one connection buffers.
	maxBuffered = 256 << 10
)

// pool is a budget of bytes. A claim that exceeds what is free waits in turn; a source that
// holds half of the pool delays only itself.
type pool struct {
	size int64

	mu      sync.Mutex
	used    int64
	by      map[string]int64
	waiting []*claim
}

// claim is a request for bytes; granted is closed when they are granted.
type claim struct {
	source  string
	bytes   int64
	granted chan struct{}
}

func newPool(size int64) *pool { return &pool{size: size, by: map[string]int64{}} }

// borrow waits until the source is granted the bytes, or until ctx is done.
func (p *pool) borrow(ctx context.Context, source string, bytes int64) (giveBack func(), ok bool) {
	c := &claim{source: source, bytes: bytes, granted: make(chan struct{})}
	p.mu.Lock()
	p.waiting = append(p.waiting, c)
	p.grant()
	p.mu.Unlock()
	select {
	case <-c.granted:
		return func() { p.giveBack(c) }, true
	case <-ctx.Done():
	}
	p.mu.Lock()
	i := slices.Index(p.waiting, c)
	if i >= 0 {
		p.waiting = slices.Delete(p.waiting, i, i+1)
		p.grant()
	}
	p.mu.Unlock()
	if i < 0 {
		p.giveBack(c) // it was granted meanwhile
	}
	return nil, false
}

func (p *pool) giveBack(c *claim) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used -= c.bytes
	if p.by[c.source] -= c.bytes; p.by[c.source] == 0 {
		delete(p.by, c.source)
	}
	p.grant()
}

// grant grants claims in order. A claim whose source has used up its share is skipped; one
// that waits for free bytes also holds up the claims behind it.
func (p *pool) grant() {
	full := false
	p.waiting = slices.DeleteFunc(p.waiting, func(c *claim) bool {
		if full || p.by[c.source]+c.bytes > p.size/2 {
			return false
		}
		if full = p.used+c.bytes > p.size; full {
			return false
		}
		p.used += c.bytes
		p.by[c.source] += c.bytes
		close(c.granted)
		return true
	})
}

// source returns what identifies a client: the host of its address.
func source(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return host
}

// bounded serves a request once the pool for its body length has granted the bytes. A request
// whose declared length exceeds limit is refused unread.
func (s *Server) bounded(limit int64, long *pool, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength > limit {
			w.Header().Set("Connection", "close")
			http.Error(w, "the review is too long", http.StatusRequestEntityTooLarge)
			return
		}
		bytes, from := r.ContentLength, s.usual
		if bytes < 0 {
			bytes = limit
		}
		if bytes > usualBody {
			from = long
		}
		giveBack, ok := from.borrow(r.Context(), source(r.RemoteAddr), bytes)
		if !ok {
			return
		}
		defer giveBack()
		r.Body = http.MaxBytesReader(w, r.Body, max(bytes, 1))
		next.ServeHTTP(w, r)
	})
}

// limited is a listener with at most all open connections, of which an address holds no more than
// are free; further ones are closed at once.
type limited struct {
	net.Listener
	all int

	mu   sync.Mutex
	open int
	by   map[string]int
}

func limitConnections(l net.Listener, all int) *limited {
	return &limited{Listener: l, all: all, by: map[string]int{}}
}

// Accept returns the next connection within the limits.
func (l *limited) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		from := source(conn.RemoteAddr().String())
		if l.admit(from) {
			return &counted{Conn: conn, leave: sync.OnceFunc(func() { l.release(from) })}, nil
		}
		_ = conn.Close()
	}
}

func (l *limited) admit(from string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.by[from] >= l.all-l.open {
		return false
	}
	l.open++
	l.by[from]++
	return true
}

func (l *limited) release(from string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open--
	if l.by[from]--; l.by[from] == 0 {
		delete(l.by, from)
	}
}

// counted is a connection that is no longer counted once it is closed.
type counted struct {
	net.Conn
	leave func()
}

// Close closes the connection and stops counting it.
func (c *counted) Close() error {
	defer c.leave()
	return c.Conn.Close()
}
