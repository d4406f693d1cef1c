// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"slices"
	"sync"
	"time"
)

// A machine that is shared, or moved, may stand still for most of a minute. Timeouts run out
// meanwhile, though nothing is wrong with what a test looks at.
const (
	beatEvery = 100 * time.Millisecond
	// longBeat is the pause between two beats from which on the machine stood still.
	longBeat = 3 * time.Second
)

// Stalls are the times during which this machine stood still.
type Stalls struct {
	mu    sync.Mutex
	last  time.Time
	spans []span
}

type span struct{ from, to time.Time }

// WatchStalls notes the stalls of the machine until ctx ends.
func WatchStalls(ctx context.Context) *Stalls {
	s := &Stalls{last: time.Now()}
	go func() {
		for ctx.Err() == nil {
			<-time.After(beatEvery)
			s.beat(time.Now())
		}
	}()
	return s
}

// beat notes that the machine runs.
func (s *Stalls) beat(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.last) >= longBeat {
		s.spans = append(s.spans, span{s.last, now})
	}
	s.last = now
}

// Excuse reports whether the machine stood still at a time, or less than after before it: what went
// wrong then may be its fault.
func (s *Stalls) Excuse(at time.Time, after time.Duration) bool {
	s.beat(time.Now())
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.spans, func(p span) bool { return !at.Before(p.from) && at.Before(p.to.Add(after)) })
}

// Lost returns how long the machine stood still between two times.
func (s *Stalls) Lost(from, to time.Time) (lost time.Duration) {
	s.beat(time.Now())
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.spans {
		begin, end := p.from, p.to
		if begin.Before(from) {
			begin = from
		}
		if end.After(to) {
			end = to
		}
		lost += max(0, end.Sub(begin))
	}
	return lost
}
