// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"net/http"
	"sync/atomic"
	"time"
)

// serverDate is what an API server last said of the time. What the hub stamped is
// compared with the hub's own time, since the clock of this machine may differ.
type serverDate struct{ last atomic.Pointer[time.Time] }

// read makes a transport that notes the header Date of each answer.
func (d *serverDate) read(next http.RoundTripper) http.RoundTripper {
	return roundTrip(func(q *http.Request) (*http.Response, error) {
		answer, err := next.RoundTrip(q)
		if err != nil {
			return answer, err
		}
		if at, parseErr := http.ParseTime(answer.Header.Get("Date")); parseErr == nil {
			d.last.Store(&at)
		}
		return answer, nil
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip sends a request.
func (f roundTrip) RoundTrip(q *http.Request) (*http.Response, error) { return f(q) }

// Now is the time of the API server as its last answer gave it, or local where it
// gave none.
func (c *Cluster) Now(local time.Time) time.Time {
	if c.date == nil {
		return local
	}
	if at := c.date.last.Load(); at != nil {
		return *at
	}
	return local
}
