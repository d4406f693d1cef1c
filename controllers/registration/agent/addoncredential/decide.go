// SPDX-License-Identifier: Apache-2.0

package addoncredential

import (
	"cmp"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/request"
)

// longest is the maximum time between checks of a credential, so that it does not expire
// because a clock was set.
const longest = time.Hour

// Phase is the state of a registration.
type Phase string

// The phases.
const (
	// PhaseIdle means that there is nothing to report.
	PhaseIdle Phase = ""
	// PhaseServing means that the add-on has its credential.
	PhaseServing Phase = "Serving"
	// PhaseWaiting means that the registration waits for another party.
	PhaseWaiting Phase = "Waiting"
	// PhaseFailed means that something went wrong; it is retried.
	PhaseFailed Phase = "Failed"
)

// phases maps the stages of a request to phases.
var phases = map[request.Stage]Phase{
	request.Serving: PhaseServing, request.Preparing: PhaseWaiting, request.Waiting: PhaseWaiting, request.Denied: PhaseFailed,
}

// The steps of add-ons, in addition to the common ones.
const (
	// stepDrop removes a credential that was made for another registration.
	stepDrop = request.StepOwn
	// stepHold stores the issued certificate with its key until its namespace exists.
	stepHold = request.StepOwn + 1
	// stepToken requests a token and stores it.
	stepToken = request.StepOwn + 2
)

// State is the input of a decision about one registration.
type State struct {
	Now  time.Time
	Want Want
	// Digest is the digest of Want.
	Digest string
	// Held is the add-on's secret, Pending that of the request; nil when this agent has none
	// there.
	Held, Pending *Secret
	// Stored is what this agent has in the place of Pending, even if its labels are wrong.
	Stored *Secret
	// Answer is the hub's view of the pending request.
	Answer request.Answer
	// Kubeconfig is the digest of the kubeconfig wanted; empty for none.
	Kubeconfig string
	// Namespace is whether the add-on's namespace exists, where it matters.
	Namespace Presence
	// Infrastructure is the UID of the ServiceAccount for tokens; Waiting is why there is
	// none.
	Infrastructure types.UID
	Waiting        string
	// Deleting is true while the add-on is being deleted. Its credential is left unchanged
	// until the add-on is gone.
	Deleting bool
	// Asked is when this process created the pending request; zero if it did not.
	Asked time.Time
	// KeptAt is when this process stored the credential; zero if that was before it started.
	KeptAt time.Time
}

// Presence is whether something exists.
type Presence int

// The presences.
const (
	// Unknown means that the API server has not answered yet.
	Unknown Presence = iota
	// Missing means that it does not exist.
	Missing
	// Present means that it exists.
	Present
	// Blind means that the agent may not look for it, as where it hosts add-ons.
	Blind
)

// Plan is what one pass does for one registration.
type Plan struct {
	request.Plan
	// Phase is reported, with the message.
	Phase Phase
}

// Decide chooses the next step from a registration to a valid credential, and on to its
// renewal.
func Decide(s State) Plan {
	switch {
	case s.Want.Problem != "":
		// The add-on keeps what it has.
		return Plan{Phase: PhaseFailed, Plan: request.Plan{Message: s.Want.Problem}}
	case s.Deleting && (s.Held == nil || s.Held.Digest != s.Digest):
		return Plan{}
	case s.Held != nil && s.Held.Digest != s.Digest:
		return Plan{Phase: PhaseWaiting, Plan: request.Plan{Step: stepDrop, Message: "the registration changed: the old credential is removed"}}
	}
	m := s.machine()
	p, rests := m.Rest()
	switch {
	case rests:
	case s.Want.Token():
		p = s.planToken()
	default:
		if p = m.Request(); p.Step == request.StepKeep {
			p = s.planHome(p)
		}
	}
	out := Plan{Plan: p, Phase: phases[p.Stage]}
	if m.Unusable == "" && !rests && out.Phase == PhaseWaiting {
		// A renewal in progress is not reported; a failed one is. The credential is checked
		// again when it expires at the latest.
		out.Phase, out.RequeueAfter = PhaseServing, min(cmp.Or(p.RequeueAfter, longest), longest, s.life().Until.Sub(s.Now))
	}
	if out.Phase == PhaseServing {
		out.Message = s.validMessage()
	}
	return out
}

// machine returns the input of the state machine common to all certificates.
func (s State) machine() request.State {
	m := request.State{
		Now: s.Now, Unusable: s.unusable(), Every: longest, KeptAt: s.KeptAt, Meant: s.Held != nil,
		Noted: s.Pending != nil, Current: s.isCurrent(), Done: s.isFulfilled(), Answer: s.Answer, Asked: s.Asked,
		Check: func(leaf *x509.Certificate) error {
			if !sameSubject(leaf.Subject, s.Want.Subject) {
				return errors.New("the issued certificate is for another subject")
			}
			return nil
		},
	}
	if s.Held != nil {
		m.Renew, m.Stale = s.life().Renew, s.Held.Kubeconfig != s.Kubeconfig || s.Held.Cluster != s.Want.Cluster
	}
	if s.Pending != nil {
		m.Pending = *s.Pending.Pending
	}
	return m
}

// isFulfilled reports whether the pending request's certificate is the one held.
func (s State) isFulfilled() bool {
	return s.Held != nil && s.Pending != nil && len(s.Pending.Pending.Key) > 0 && s.Held.Key == textDigest(s.Pending.Pending.Key)
}

// life returns the Life of the credential held.
func (s State) life() Life {
	if s.Want.Token() {
		return s.Held.Token
	}
	return s.Held.Certificate
}

// unusable returns why the credential held cannot be used; empty when it can.
func (s State) unusable() string {
	if s.Held == nil {
		return "there is no credential yet"
	}
	l := s.life()
	switch {
	case l.Problem != "":
		return l.Problem
	case !s.Now.Before(l.Until):
		return "the credential expired at " + request.Stamp(l.Until)
	case s.Want.Token() && l.Owner != s.serviceAccount():
		return "the token belongs to another ServiceAccount"
	case s.Want.Token() && s.Infrastructure != "" && l.UID != s.Infrastructure:
		return "the ServiceAccount of the token was created again"
	}
	return ""
}

func (s State) serviceAccount() string {
	return s.Want.Cluster + "/" + s.Want.account()
}

func (s State) validMessage() string {
	if s.Want.Token() {
		return "Addon token refreshed, expires at " + request.Stamp(s.life().Until)
	}
	return fmt.Sprintf("secret %s/%s holds a certificate that is valid until %s", s.Want.Namespace, s.Want.Name, request.Stamp(s.life().Until))
}

// planHomeless returns the plan while the namespace for a new secret does not exist.
func (s State) planHomeless() (request.Plan, bool) {
	if s.Held != nil || s.Namespace == Present || s.Namespace == Blind {
		return request.Plan{}, false
	}
	p := request.Plan{Stage: request.Preparing, Message: fmt.Sprintf("namespace %s does not exist on the cluster", s.Want.Namespace)}
	if s.Namespace == Unknown {
		p.Message, p.RequeueAfter = fmt.Sprintf("looking for namespace %s on the cluster", s.Want.Namespace), request.Recheck
	}
	return p, true
}

// planToken returns the plan for getting a new token.
func (s State) planToken() request.Plan {
	if s.Waiting != "" {
		return request.Plan{Stage: request.Preparing, Message: s.Waiting}
	}
	if p, ok := s.planHomeless(); ok {
		return p
	}
	return request.Plan{Step: stepToken, Stage: request.Preparing, Message: "asking for a token"}
}

// planHome returns the plan for a certificate about to be stored: it is held with its request
// while its namespace does not exist.
func (s State) planHome(p request.Plan) request.Plan {
	wait, ok := s.planHomeless()
	switch {
	case !ok:
		return p
	case s.Namespace == Missing && len(s.Pending.Pending.Certificate) == 0:
		wait.Step, wait.Certificate = stepHold, p.Certificate
	}
	return wait
}

// isCurrent reports whether the pending request is for the current registration.
func (s State) isCurrent() bool { return s.Pending != nil && s.Pending.Digest == s.Digest }

// watched returns the name of the request whose answer is awaited, if any.
func (s State) watched() string {
	if s.Want.Problem != "" || s.Want.Token() || !s.isCurrent() || len(s.Pending.Pending.Certificate) > 0 {
		return ""
	}
	if s.Held != nil && s.Held.Digest == s.Digest && s.unusable() == "" && s.Now.Before(request.Due(s.life().Renew, s.KeptAt)) {
		return ""
	}
	return s.Pending.Pending.Request
}
