// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
)

// Errors for an agent whose hub has revoked its registration.
var (
	// ErrNoCluster means that the agent's ManagedCluster does not exist on the hub.
	ErrNoCluster = errors.New("the hub has no ManagedCluster of this name any more")
	// ErrNotAccepted means that an administrator of the hub withdrew the acceptance.
	ErrNotAccepted = errors.New("the hub does not accept the cluster any more")
)

// Trouble is a failure in the communication with a hub.
type Trouble struct {
	// Problem says what was attempted and why it failed; empty while all is well.
	Problem string
	// Since is when it first failed after having worked.
	Since time.Time
	// Refused is true when the hub answered and refused, Unknown when it does not know the
	// agent's credential.
	Refused, Unknown bool
}

// Contact records which of a session's regular requests to its hub fail, so that no extra
// request is needed to know whether the hub can be reached. Its methods are safe for
// concurrent use.
type Contact struct {
	clock    clock.PassiveClock
	onChange func()

	mu      sync.Mutex
	trouble map[string]Trouble
}

// NewContact makes a Contact without trouble. onChange is called when trouble begins, changes
// or ends; it must not block.
func NewContact(clk clock.PassiveClock, onChange func()) *Contact {
	return &Contact{clock: clk, onChange: onChange, trouble: map[string]Trouble{}}
}

// Note records the outcome of an activity, named by a gerund; nil means success.
func (c *Contact) Note(activity string, err error) {
	if c.record(activity, err) {
		c.onChange()
	}
}

func (c *Contact) record(activity string, err error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	before, had := c.trouble[activity]
	if err == nil {
		delete(c.trouble, activity)
		return had
	}
	now := Trouble{Problem: activity + ": " + watch.Reason(err), Since: c.clock.Now(), Refused: isRefused(err), Unknown: apierrors.IsUnauthorized(err)}
	if had {
		now.Since = before.Since
	}
	c.trouble[activity] = now
	return now != before
}

// Trouble returns the failure that has lasted longest; zero when there is none.
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

// Unknown reports whether some request failed because the hub does not know the agent's credential.
func (c *Contact) Unknown() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range c.trouble {
		if t.Unknown {
			return true
		}
	}
	return false
}

// isRefused reports whether the hub itself refused the request.
func isRefused(err error) bool {
	return apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) || apierrors.IsNotFound(err) ||
		errors.Is(err, ErrNoCluster) || errors.Is(err, ErrNotAccepted)
}
