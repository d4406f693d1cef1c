// SPDX-License-Identifier: Apache-2.0

package work

import (
	"errors"
	"net/http"
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
