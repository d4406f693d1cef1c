// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Weather disturbs the traffic of a process at random: API servers that are busy (429 with
// Retry-After), fail (500), report conflicts (409) and forget where a watch was (410), lines that
// are cut or slow, and watches whose stream ends in the middle of an event or repeats one. The
// same seed draws the same disturbances for the same requests in the same order.
type Weather struct {
	// Percent of the requests are disturbed.
	Percent int

	mu     sync.Mutex
	random *rand.Rand
	done   map[string]int
}

// NewWeather returns weather of this seed that disturbs a twentieth of all requests.
func NewWeather(seed uint64) *Weather {
	return &Weather{Percent: 5, random: rand.New(rand.NewPCG(seed, seed)), done: map[string]int{}}
}

// Over disturbs a process until Fair.
func (w *Weather) Over(p *Process) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.weather = w
}

// Fair ends what disturbs a process, but for the streams that it has.
func (p *Process) Fair() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.weather = nil
}

// Done returns how often the weather did what, for example "409".
func (w *Weather) Done() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := map[string]int{}
	for what, n := range w.done {
		out[what] = n
	}
	return out
}

// draw returns what happens to a request: one of these kinds, or nothing.
func (w *Weather) draw(kinds ...string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.random.IntN(100) >= w.Percent {
		return ""
	}
	kind := kinds[w.random.IntN(len(kinds))]
	w.done[kind]++
	return kind
}

// isWatch reports whether the answer to a request is a stream of events.
func isWatch(r *http.Request) bool {
	return r.URL.Query().Get("watch") == "true" || r.URL.Query().Get("watch") == "1"
}

// trip sends a request through the weather.
func (w *Weather) trip(r *http.Request, send func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	kinds := []string{"cut", "lost", "slow", "429", "500"}
	switch {
	case isWatch(r):
		kinds = []string{"cut", "410", "429", "truncated", "truncated", "repeated", "slow reader"}
	case r.Method == http.MethodPut || r.Method == http.MethodPatch || r.Method == http.MethodDelete:
		kinds = append(kinds, "409")
	}
	kind := w.draw(kinds...)
	if answer, ok := refusals[kind]; ok {
		return answer.to(r)
	}
	switch kind {
	case "cut":
		return nil, joined(ErrCut, closeBody(r))
	case "lost": // it reaches the server, and the answer is lost
		response, err := send(r)
		if err != nil {
			return nil, err
		}
		return nil, joined(ErrCut, response.Body.Close())
	case "slow":
		if err := pause(r, 200*time.Millisecond); err != nil {
			return nil, joined(err, closeBody(r))
		}
	case "truncated", "repeated", "slow reader":
		response, err := send(r)
		if err == nil && strings.HasPrefix(response.Header.Get("Content-Type"), "application/json") {
			response.Body = streamOf(response.Body, r, kind)
		}
		return response, err
	}
	return send(r)
}

// joined returns the first of two errors with the second, if there is one.
func joined(err, second error) error {
	if second != nil {
		return fmt.Errorf("%w; %w", err, second)
	}
	return err
}

// pause waits, unless the request ends before.
func pause(r *http.Request, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-r.Context().Done():
		return r.Context().Err()
	}
}

// refusal is an answer of an API server that does not do what it was asked.
type refusal struct {
	code   int
	reason string
}

var refusals = map[string]refusal{
	"409": {http.StatusConflict, "Conflict"},
	"410": {http.StatusGone, "Expired"},
	"429": {http.StatusTooManyRequests, "TooManyRequests"},
	"500": {http.StatusInternalServerError, "InternalError"},
}

// to answers a request with the refusal.
func (f refusal) to(r *http.Request) (*http.Response, error) {
	body := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"the weather of the test","reason":%q,"code":%d}`, f.reason, f.code)
	header := http.Header{"Content-Type": {"application/json"}}
	if f.code == http.StatusTooManyRequests {
		header.Set("Retry-After", "1")
	}
	return &http.Response{
		StatusCode: f.code, Status: fmt.Sprintf("%d %s", f.code, f.reason), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), Request: r,
	}, closeBody(r)
}

// stream is the body of a watch, read event by event.
type stream struct {
	io.ReadCloser
	lines   *bufio.Reader
	request *http.Request
	kind    string
	left    bytes.Buffer
	events  int
}

// streamOf returns a body that is disturbed in this way.
func streamOf(body io.ReadCloser, r *http.Request, kind string) *stream {
	return &stream{ReadCloser: body, lines: bufio.NewReader(body), request: r, kind: kind}
}

// truncateAt is the event in whose middle a truncated stream ends.
const truncateAt = 3

// Read reads what is left of an event, or the next one.
func (s *stream) Read(p []byte) (int, error) {
	if s.left.Len() > 0 {
		return s.left.Read(p)
	}
	line, err := s.lines.ReadBytes('\n')
	if err != nil {
		return 0, err
	}
	s.events++
	switch s.kind {
	case "truncated":
		if s.events == truncateAt {
			line = line[:len(line)/2]
		}
		if s.events > truncateAt {
			return 0, io.ErrUnexpectedEOF
		}
	case "repeated":
		if bytes.HasPrefix(line, []byte(`{"type":"MODIFIED"`)) {
			s.left.Write(line)
		}
	case "slow reader":
		if err := pause(s.request, 100*time.Millisecond); err != nil {
			return 0, err
		}
	}
	s.left.Write(line)
	return s.left.Read(p)
}
