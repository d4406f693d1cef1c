// SPDX-License-Identifier: Apache-2.0

package work

import (
	"errors"
	"net/http"
	"time"

	"github.com/stretchr/testify/require"
)

var errCut = errors.New("the line is cut")

// cut makes every request to one side fail from now on.
func (c *counter) cut(side string) {
	c.fail(func(to string, _ *http.Request) error {
		if to == side {
			return errCut
		}
		return nil
	})
}

// fail sets what is asked before each request; nil lets everything through.
func (c *counter) fail(fault func(side string, r *http.Request) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fault = fault
}

// dieAfter lets the agent die after its nth write from now on.
func (c *counter) dieAfter(n int) (crashed <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writesLeft, c.crashed = n, make(chan struct{})
	return c.crashed
}

// revive lets everything through again.
func (c *counter) revive() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.crashed = nil
}

// rests waits until the agent has sent nothing for a second and a half, and makes
// sure that it goes on like that.
func (s *scene) rests() {
	s.t.Helper()
	last := time.Now()
	s.eventually(func() bool {
		if len(s.sent.take()) > 0 {
			last = time.Now()
		}
		return time.Since(last) > 1500*time.Millisecond
	}, "the agent does not come to rest")
	require.Never(s.t, func() bool { return len(s.sent.take()) > 0 }, 2*time.Second, 100*time.Millisecond, "the agent does not stay at rest")
}
