// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"net"
	"net/http"
	"slices"
	"sync"
)

// The port is open to everybody in the cluster, and nothing but its own limits
// bounds what they make the process hold. A body counts with its length from before
// it is read until it is answered, one of unknown length as the longest.
const (
	// maxAdmission is the longest review of admission: an API server takes objects of
	// at most 3 MiB, and a review holds two, with its options.
	maxAdmission = 8 << 20
	// maxConversion is the longest review of a conversion: an API server converts what
	// it stores one by one, and a list only where it holds objects of several versions.
	maxConversion = 8 << 20
	// maxConverted is the longest object that is converted.
	maxConverted = 4 << 20
	// usualBody is how long the body of a usual review is. Longer ones have a pool of
	// their own, so that they hold no usual one up.
	usualBody = 128 << 10
	// maxBodies is how many bytes of bodies a pool holds; one client has at most half
	// of them.
	maxBodies = 4 * maxAdmission
	// maxDecoding is how many long bodies are decoded at a time: decoded, hostile JSON
	// takes many times its length.
	maxDecoding = 2
	// maxConnections and maxConnectionsEach are how many connections are held, of all
	// and of one address; maxStreams is how many requests one connection has at a time.
	maxConnections     = 512
	maxConnectionsEach = 64
	maxStreams         = 64
	// maxBuffered is how much of unread bodies one connection holds.
	maxBuffered = 256 << 10
)

// pool lends bytes. Who asks for more than there is waits in turn; who has half of
// all holds up itself only.
type pool struct {
	size int64

	mu      sync.Mutex
	used    int64
	by      map[string]int64
	waiting []*claim
}

// claim is a request for bytes; granted is closed when it is met.
type claim struct {
	source  string
	bytes   int64
	granted chan struct{}
}

func newPool(size int64) *pool { return &pool{size: size, by: map[string]int64{}} }

// borrow waits until the source may have so many bytes, or until ctx ends.
func (p *pool) borrow(ctx context.Context, source string, bytes int64) (giveBack func(), ok bool) {
	c := &claim{source: source, bytes: bytes, granted: make(chan struct{})}
	p.mu.Lock()
	p.waiting = append(p.waiting, c)
	p.grant()
	p.mu.Unlock()
	select {
	case <-c.granted:
		return func() { p.end(c) }, true
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
		p.end(c) // it was granted meanwhile
	}
	return nil, false
}

func (p *pool) end(c *claim) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used -= c.bytes
	if p.by[c.source] -= c.bytes; p.by[c.source] == 0 {
		delete(p.by, c.source)
	}
	p.grant()
}

// grant meets claims in their order. One whose source has its share already is
// passed over; one that waits for bytes of the pool keeps its place.
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

// source is who counts as one client: an address.
func source(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return host
}

// bounded serves a request once its body, of at most limit bytes, has a place in
// the pool of its length; what says that it is longer is refused unread.
func (s *Server) bounded(limit int64, long *pool, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength > limit {
			w.Header().Set("Connection", "close")
			http.Error(w, "the review is longer than an API server sends", http.StatusRequestEntityTooLarge)
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

// decoding waits for a turn to decode a body, where that is a long one.
func (s *Server) decoding(ctx context.Context, length int) (done func(), ok bool) {
	if length <= usualBody {
		return func() {}, true
	}
	select {
	case s.decodes <- struct{}{}:
		return func() { <-s.decodes }, true
	case <-ctx.Done():
		return nil, false
	}
}

// limited is a listener that holds so many connections at most, and of one address
// fewer; what comes beyond is closed at once.
type limited struct {
	net.Listener
	all, each int

	mu   sync.Mutex
	open int
	by   map[string]int
}

func limit(l net.Listener, all, each int) *limited {
	return &limited{Listener: l, all: all, each: each, by: map[string]int{}}
}

// Accept returns the next connection that there is room for.
func (l *limited) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		from := source(conn.RemoteAddr().String())
		if l.enter(from) {
			return &counted{Conn: conn, leave: sync.OnceFunc(func() { l.leave(from) })}, nil
		}
		_ = conn.Close()
	}
}

func (l *limited) enter(from string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open >= l.all || l.by[from] >= l.each {
		return false
	}
	l.open++
	l.by[from]++
	return true
}

func (l *limited) leave(from string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open--
	if l.by[from]--; l.by[from] == 0 {
		delete(l.by, from)
	}
}

// counted is a connection that makes room when it is closed.
type counted struct {
	net.Conn
	leave func()
}

// Close closes the connection.
func (c *counted) Close() error {
	defer c.leave()
	return c.Conn.Close()
}
