// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"net"
	"net/url"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
)

// Why a hub has no use for an agent that it once accepted.
var (
	// ErrNoCluster means that the agent's ManagedCluster is not on the hub.
	ErrNoCluster = errors.New("the hub has no ManagedCluster of this name any more")
	// ErrNotAccepted means that an administrator of the hub withdrew the
	// acceptance.
	ErrNotAccepted = errors.New("the hub does not accept the cluster any more")
)

// Trouble is what of the talk with a hub fails.
type Trouble struct {
	// Problem says what was done and why it failed; empty while all is well.
	Problem string
	// Since is when it first failed after it had worked.
	Since time.Time
	// Refused tells that the hub answered, and does not let the agent do it.
	Refused bool
}

// Contact remembers which of the things that a session does on its hub anyway
// fail, so that nothing has to be asked for to know whether the hub is there.
// Its methods are safe for concurrent use.
type Contact struct {
	clock    clock.PassiveClock
	onChange func()

	mu      sync.Mutex
	trouble map[string]Trouble
}

// NewContact makes a Contact that knows of no trouble. onChange is called when
// trouble begins, changes or ends; it must not block.
func NewContact(clk clock.PassiveClock, onChange func()) *Contact {
	return &Contact{clock: clk, onChange: onChange, trouble: map[string]Trouble{}}
}

// Note keeps how an activity, named by a gerund, ended; nil: the hub let it be
// done.
func (c *Contact) Note(activity string, err error) {
	if c.note(activity, err) {
		c.onChange()
	}
}

func (c *Contact) note(activity string, err error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	before, had := c.trouble[activity]
	if err == nil {
		delete(c.trouble, activity)
		return had
	}
	now := Trouble{Problem: activity + ": " + reason(err), Since: c.clock.Now(), Refused: refused(err)}
	if had {
		now.Since = before.Since
	}
	c.trouble[activity] = now
	return now != before
}

// Trouble is what has failed for the longest time, zero when nothing does.
func (c *Contact) Trouble() Trouble {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out Trouble
	for _, t := range c.trouble {
		if out.Problem == "" || t.Since.Before(out.Since) || (t.Since.Equal(out.Since) && t.Problem < out.Problem) {
			out = t
		}
	}
	return out
}

// refused tells whether it was the hub that said no.
func refused(err error) bool {
	return apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) || apierrors.IsNotFound(err) ||
		errors.Is(err, ErrNoCluster) || errors.Is(err, ErrNotAccepted)
}

// reason is the text of an error without what differs from attempt to attempt:
// the query of a request and the local port.
func reason(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "no answer in time"
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Addr != nil {
		return op.Op + " " + op.Addr.String() + ": " + op.Err.Error()
	}
	if request, ok := errors.AsType[*url.Error](err); ok {
		return request.Err.Error()
	}
	return err.Error()
}
