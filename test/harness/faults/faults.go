// SPDX-License-Identifier: Apache-2.0

// Package faults sits between a process and its API servers: it records requests, makes
// them fail, and ends the process after its n-th write, as if it had been killed there. A
// scenario that is run once for every n, and then once without a fault, shows that no
// crash between two writes leaves anything behind or does anything twice.
package faults

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"

	"k8s.io/client-go/rest"
)

var (
	// ErrStopped is the error of every request once the process counts as dead.
	ErrStopped = errors.New("the process was stopped by the test")
	// ErrCut is the error of requests to a side that is cut off.
	ErrCut = errors.New("the line is cut")
)

// Process is the traffic of one process to any number of API servers. The zero value lets
// everything through. It is safe for concurrent use.
type Process struct {
	mu sync.Mutex
	// sent are the requests since Take, done the writes that reached a server.
	sent, done []string
	// under counts the requests in flight.
	under int
	// fault is called before each request, answer after that.
	fault  func(side string, r *http.Request) error
	answer func(side string, r *http.Request) *http.Response
	// left is the number of writes until the process dies, when died is closed. With a
	// nil channel, the process does not die.
	left int
	died chan struct{}
	// weather disturbs the requests that are let through; nil for none.
	weather *Weather
}

// Count returns a copy of c whose requests are counted, and the counter.
func Count(c *rest.Config) (*rest.Config, *Process) {
	p := &Process{}
	return p.On(c, ""), p
}

// StopAfter returns a copy of c for a process that dies after n writes; see DieAfter.
func StopAfter(c *rest.Config, n int) (*rest.Config, *Process) {
	p := &Process{}
	p.DieAfter(n)
	return p.On(c, ""), p
}

// On returns a copy of c with which the process reaches one API server, called side in
// what is recorded.
func (p *Process) On(c *rest.Config, side string) *rest.Config {
	out := rest.CopyConfig(c)
	out.Wrap(func(next http.RoundTripper) http.RoundTripper { return &transport{next, side, p} })
	return out
}

// DieAfter makes the process die with its n-th write from now on: that write reaches the
// server, its answer is lost, and every later request fails with ErrStopped. With zero,
// it dies immediately. Events do not count. The channel is closed when it dies.
func (p *Process) DieAfter(n int) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left, p.died = n, make(chan struct{})
	if n == 0 {
		close(p.died)
	}
	return p.died
}

// Revive lets everything through again.
func (p *Process) Revive() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.died = nil
}

// Died returns a channel that is closed when the process is dead; nil if it cannot die.
func (p *Process) Died() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.died
}

// Dead reports whether the process is dead.
func (p *Process) Dead() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dead()
}

func (p *Process) dead() bool {
	select {
	case <-p.died:
		return true
	default:
		return false
	}
}

// Fail sets a function that is called before each request; its error is returned instead
// of an answer. Nil lets everything through.
func (p *Process) Fail(fault func(side string, r *http.Request) error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = fault
}

// Answer sets a function that answers in place of the API server. A nil answer lets the
// request through, and so does a nil function.
func (p *Process) Answer(answer func(side string, r *http.Request) *http.Response) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer = answer
}

// Cut makes every request to one side fail from now on.
func (p *Process) Cut(side string) {
	p.Fail(func(to string, _ *http.Request) error {
		if to == side {
			return ErrCut
		}
		return nil
	})
}

// Take returns the requests since the last call, as "side METHOD path", whether
// they reached a server or not.
func (p *Process) Take() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := p.sent
	p.sent = nil
	return out
}

// Seen returns the writes that have reached a server so far, in the form of Take.
func (p *Process) Seen() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.done)
}

// Busy reports whether a request is in flight. A watch counts until its answer begins.
func (p *Process) Busy() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.under > 0
}

// answered records that a request is no longer in flight.
func (p *Process) answered() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.under--
}

// admit records a request. It returns the answer to give in its place, an error to fail
// it with, or nothing when it may go on.
func (p *Process) admit(side string, r *http.Request) (*http.Response, error) {
	p.mu.Lock()
	p.sent = append(p.sent, form(side, r))
	p.under++
	fault, answer := p.fault, p.answer
	p.mu.Unlock()
	if fault != nil {
		if err := fault(side, r); err != nil {
			return nil, err
		}
	}
	if answer != nil {
		return answer(side, r), nil
	}
	return nil, nil
}

func form(side string, r *http.Request) string {
	return strings.TrimSpace(side + " " + r.Method + " " + r.URL.Path)
}

// isWrite reports whether a request changes something.
func isWrite(r *http.Request) bool {
	switch r.Method {
	case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
		return true
	}
	return false
}

type transport struct {
	next    http.RoundTripper
	side    string
	process *Process
}

// RoundTrip passes the request on, unless a fault or the death of the process prevents
// it.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	defer t.process.answered()
	answer, err := t.process.admit(t.side, r)
	if err != nil {
		return nil, errors.Join(err, closeBody(r))
	}
	if answer != nil {
		return answer, closeBody(r)
	}
	if !isWrite(r) {
		if t.process.Dead() {
			return nil, ErrStopped
		}
		return t.send(r)
	}
	return t.write(r)
}

// write sends a write, under the lock because nothing may overtake the last one.
func (t *transport) write(r *http.Request) (*http.Response, error) {
	p := t.process
	p.mu.Lock()
	if p.dead() {
		p.mu.Unlock()
		return nil, errors.Join(ErrStopped, closeBody(r))
	}
	p.done = append(p.done, form(t.side, r))
	if p.died != nil && !strings.HasSuffix(r.URL.Path, "/events") {
		p.left--
		if p.left == 0 {
			defer p.mu.Unlock()
			defer close(p.died)
			response, err := t.next.RoundTrip(r)
			if err != nil {
				return nil, errors.Join(ErrStopped, err)
			}
			return nil, errors.Join(ErrStopped, response.Body.Close())
		}
	}
	p.mu.Unlock()
	return t.send(r)
}

// send sends a request to the server, through the weather if there is any.
func (t *transport) send(r *http.Request) (*http.Response, error) {
	t.process.mu.Lock()
	weather := t.process.weather
	t.process.mu.Unlock()
	if weather == nil {
		return t.next.RoundTrip(r)
	}
	return weather.trip(r, t.next.RoundTrip)
}

func closeBody(r *http.Request) error {
	if r.Body == nil {
		return nil
	}
	return r.Body.Close()
}
