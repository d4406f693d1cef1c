// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"crypto/tls"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Book holds the serving certificates of a listener. It is safe for concurrent use.
type Book struct {
	mu     sync.RWMutex
	pages  map[string]*tls.Certificate
	want   []string
	filled chan struct{}
	fill   func() // closes filled, once
}

// NewBook returns an empty Book that is filled once it holds a certificate for each of
// the DNS names.
func NewBook(names ...string) *Book {
	filled := make(chan struct{})
	return &Book{pages: map[string]*tls.Certificate{}, want: names, filled: filled, fill: sync.OnceFunc(func() { close(filled) })}
}

// Put serves name with the pair from now on. If the pair cannot be parsed, the previous
// one stays.
func (b *Book) Put(name string, p Pair) error {
	pair, err := parse(p)
	if err != nil {
		return fmt.Errorf("serving %s: %w", name, err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pages[name] = pair
	if !slices.ContainsFunc(b.want, func(n string) bool { return b.pages[n] == nil }) {
		b.fill()
	}
	return nil
}

// Drop stops serving name.
func (b *Book) Drop(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.pages, name)
}

// Filled is closed when every wanted name has a certificate.
func (b *Book) Filled() <-chan struct{} { return b.filled }

// Expiries returns the expiry times of the certificates by DNS name.
func (b *Book) Expiries() map[string]time.Time {
	b.mu.RLock()
	defer b.mu.RUnlock()
	out := map[string]time.Time{}
	for name, page := range b.pages {
		out[name] = page.Leaf.NotAfter
	}
	return out
}

// Certificate chooses by the server name that the client asks for. A client that names
// none gets the first wanted one; a name that is not served is an error.
func (b *Book) Certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	name := hello.ServerName
	if name == "" && len(b.want) > 0 {
		name = b.want[0]
	}
	if c := b.pages[name]; c != nil {
		return c, nil
	}
	return nil, fmt.Errorf("serving %q: there is no certificate of that name", name)
}
