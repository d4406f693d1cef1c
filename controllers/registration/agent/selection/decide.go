// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Hub is one bootstrap secret of the list.
type Hub struct {
	// Secret is its name.
	Secret string
	// Server and ID (kubeconfig.Config.ID) are the address and the identity of the hub it
	// names; empty when Problem says why it cannot be read.
	Server, ID string
	Problem    string
	// Asked is true when the hub was asked in this round; Refusal is why it cannot be used,
	// empty when it can.
	Asked   bool
	Refusal string
	// CoolUntil is until when the hub comes after all others because it was left; zero if it
	// was not.
	CoolUntil time.Time
}

// Signs are the signs of life that a session has from a hub.
type Signs struct {
	// Server is the hub's address.
	Server string
	// At is when the hub last let the agent do its work.
	At time.Time
	// Unaccepted is true when the hub withdrew its acceptance.
	Unaccepted bool
}

// State is the input of a decision.
type State struct {
	Now time.Time
	// Hubs are the candidates, the preferred first.
	Hubs []Hub
	// Timeout is how long the hub in use may give no sign of life.
	Timeout time.Duration
	// Current is the secret in use, empty for none; Since is when it was chosen.
	Current string
	Since   time.Time
	// Joining is true while there is no valid access to a hub yet.
	Joining bool
	// Kept is the address of the hub that the stored access is for, even if it has expired.
	Kept  string
	Signs Signs
	// Rest is until when no hub is asked again, because none was usable; Reasons says why.
	Rest    time.Time
	Reasons string
}

// Plan is what one pass does.
type Plan struct {
	// Choose is the secret to use, empty for none.
	Choose string
	// Ask is the secret whose hub to ask; the next pass has the answer.
	Ask string
	// Leaving is why the hub in use should be left; empty otherwise.
	Leaving string
	// Exhausted is true when no hub is usable; Reasons says why, hub by hub.
	Exhausted bool
	Reasons   string
	// RequeueAfter is when to check again; zero waits for an event.
	RequeueAfter time.Duration
}

// Decide keeps the hub in use while it gives signs of life, and looks for another one when it
// does not.
func Decide(s State) Plan {
	p := Plan{Choose: s.Current}
	current := slices.IndexFunc(s.Hubs, func(h Hub) bool { return h.Secret == s.Current })
	if s.Current != "" && current >= 0 {
		if p.Leaving, p.RequeueAfter = s.whyLeave(s.Hubs[current]); p.Leaving == "" {
			return p
		}
	}
	if rest := s.Rest.Sub(s.Now); rest > 0 {
		p.Reasons, p.RequeueAfter = s.Reasons, rest
		return p
	}
	p.RequeueAfter = 0
	var reasons []string
	for _, h := range s.tryOrder() {
		switch {
		case h.Problem != "":
			reasons = append(reasons, h.Secret+": "+h.Problem)
		case !h.Asked:
			p.Ask = h.Secret
			return p
		case h.Refusal != "":
			reasons = append(reasons, h.Secret+": "+h.Refusal)
		default:
			p.Choose = h.Secret
			return p
		}
	}
	p.Exhausted, p.Reasons = true, strings.Join(reasons, "; ")
	return p
}

// whyLeave returns why the hub in use should be left or, while it should not, how long until
// the next check. A bootstrap kubeconfig that cannot be read does not matter to an agent that
// has access.
func (s State) whyLeave(h Hub) (why string, wait time.Duration) {
	last := s.Since
	if s.Signs.Server == h.Server {
		// What was seen before the hub was chosen again is no reason to leave it.
		if s.Signs.Unaccepted && !s.Signs.At.Before(s.Since) {
			return "its hub does not accept the cluster any more", 0
		}
		if s.Signs.At.After(last) {
			last = s.Signs.At
		}
	}
	switch wait = last.Add(s.Timeout).Sub(s.Now); {
	case s.Joining && h.Problem != "":
		return h.Problem, 0
	case wait <= 0:
		return fmt.Sprintf("its hub gave no sign of life for %s", s.Timeout), 0
	}
	return "", wait
}

// tryOrder returns the hubs other than the one in use in the order to try them: first the one
// the stored access is for, then as listed; hubs left recently come last.
func (s State) tryOrder() []Hub {
	rank := func(h Hub) int {
		switch {
		case s.Now.Before(h.CoolUntil):
			return 2
		case s.Kept != "" && h.Server == s.Kept:
			return 0
		}
		return 1
	}
	others := slices.DeleteFunc(slices.Clone(s.Hubs), func(h Hub) bool { return h.Secret == s.Current })
	slices.SortStableFunc(others, func(a, b Hub) int { return rank(a) - rank(b) })
	return others
}

// initialHub returns the hub a process starts with without asking any: the one it has valid access
// to, or is already joining. Empty means none.
func initialHub(hubs []Hub, server, pending string) string {
	for _, h := range hubs {
		if (server != "" && h.Server == server) || (server == "" && pending != "" && h.ID == pending) {
			return h.Secret
		}
	}
	return ""
}
