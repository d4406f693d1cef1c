// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"net/http"
	"sync/atomic"
	"time"
)

// serverDate is the time of an API server's last answer. Times stamped by the hub are compared
// with the hub's own clock, because the clock of this machine may differ.
type serverDate struct{ last atomic.Pointer[time.Time] }

// read wraps a transport and records the Date header of each response.
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

// Now returns the time of the API server's last response, or local when there was none.
func (c *Cluster) Now(local time.Time) time.Time {
	if c.date == nil {
		return local
	}
	if at := c.date.last.Load(); at != nil {
		return *at
	}
	return local
}
