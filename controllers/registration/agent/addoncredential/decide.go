// SPDX-License-Identifier: Apache-2.0

package addoncredential

import (
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/request"
)

// longest is how long a credential is not looked at, so that a clock that was
// set does not let it expire.
const longest = time.Hour

// Phase is where a registration stands.
type Phase string

// The phases.
const (
	// PhaseIdle means that there is nothing to tell.
	PhaseIdle Phase = ""
	// PhaseServing means that the add-on has its credential.
	PhaseServing Phase = "Serving"
	// PhaseWaiting means that somebody else has to do something.
	PhaseWaiting Phase = "Waiting"
	// PhaseFailed means that something went wrong; it is tried again.
	PhaseFailed Phase = "Failed"
)

// phases are those of the stages of a request.
var phases = map[request.Stage]Phase{
	request.Serving: PhaseServing, request.Preparing: PhaseWaiting, request.Waiting: PhaseWaiting, request.Denied: PhaseFailed,
}

// Step is the one thing that a pass does for a registration.
type Step = request.Step

// The steps of add-ons, beside those of every certificate.
const (
	// stepDrop removes a credential that was made for another registration.
	stepDrop = request.StepOwn
	// stepHold keeps the issued certificate with its key, until there is a
	// namespace for it.
	stepHold = request.StepOwn + 1
	// stepToken asks for a token and keeps it.
	stepToken = request.StepOwn + 2
)

// State is what a decision about one registration is made on.
type State struct {
	Now  time.Time
	Want Want
	// Digest is that of Want.
	Digest string
	// Held is the secret of the add-on, Pending that of the request; nil when
	// this agent has none there.
	Held, Pending *Secret
	// Answer is what the hub shows of the pending request.
	Answer request.Answer
	// Kubeconfig is the digest of the wanted one, empty for none.
	Kubeconfig string
	// Namespace is what is known of the add-on's namespace, where it matters.
	Namespace Presence
	// Infrastructure is the UID of the ServiceAccount for tokens; Waiting is why
	// there is none.
	Infrastructure types.UID
	Waiting        string
	// Deleting tells that the add-on goes. Its credential stays as it is until
	// the add-on is gone.
	Deleting bool
	// Asked is when this process created the pending request; zero when it did
	// not.
	Asked time.Time
	// KeptAt is when this process kept the credential; zero: before it started.
	KeptAt time.Time
}

// Presence is whether something exists.
type Presence int

// Presences.
const (
	// Unknown means that the API server has not said yet.
	Unknown Presence = iota
	// Missing means that it does not exist.
	Missing
	// Present means that it exists.
	Present
)

// Plan is what a pass does for one registration.
type Plan struct {
	Step request.Step
	// Phase and Message are reported.
	Phase   Phase
	Message string
	// Attempt is the number of denials to note down, Reason what the hub said to
	// the last.
	Attempt int
	Reason  string
	// RequeueAfter is when to look again; zero waits for an event.
	RequeueAfter time.Duration
}

// Decide chooses the next step from a registration to a valid credential, and
// on to its renewal.
func Decide(s State) Plan {
	switch {
	case s.Want.Problem != "":
		// What the add-on has is left to it.
		return Plan{Phase: PhaseFailed, Message: s.Want.Problem}
	case s.Deleting && (s.Held == nil || s.Held.Digest != s.Digest):
		return Plan{}
	case s.Held != nil && s.Held.Digest != s.Digest:
		return Plan{Step: stepDrop, Phase: PhaseWaiting, Message: "the registration changed: the old credential is removed"}
	}
	m := s.course()
	p, rests := m.Rest()
	switch {
	case rests:
	case s.Want.Token():
		p = s.token()
	default:
		if p = m.Request(); p.Step == request.StepKeep {
			p = s.home(p)
		}
	}
	out := Plan{Step: p.Step, Phase: phases[p.Stage], Message: p.Message, Attempt: p.Attempt, Reason: p.Reason, RequeueAfter: p.RequeueAfter}
	if m.Unusable == "" && !rests && out.Phase == PhaseWaiting {
		// That a renewal is under way is no news, that it failed is.
		out.Phase, out.RequeueAfter = PhaseServing, s.untilOver(p.RequeueAfter)
	}
	if out.Phase == PhaseServing {
		out.Message = s.good()
	}
	return out
}

// untilOver is when to look again while a good credential is renewed: after the
// time, zero for none, or when the credential is over.
func (s State) untilOver(after time.Duration) time.Duration {
	left := min(s.life().Until.Sub(s.Now), longest)
	if after == 0 {
		return left
	}
	return min(left, after)
}

// course is what the certificate of every keeper is decided on.
func (s State) course() request.State {
	m := request.State{
		Now: s.Now, Unusable: s.unusable(), Every: longest, KeptAt: s.KeptAt, Meant: s.Held != nil,
		Noted: s.Pending != nil, Current: s.current(), Done: s.fulfilled(), Answer: s.Answer, Asked: s.Asked,
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
		m.Pending, m.Certificate = s.Pending.Pending.Pending, s.Pending.Pending.Certificate
	}
	return m
}

// fulfilled tells whether the certificate of what is pending is the one that is
// held.
func (s State) fulfilled() bool {
	return s.Held != nil && s.Pending != nil && len(s.Pending.Pending.Key) > 0 && s.Held.Key == textDigest(s.Pending.Pending.Key)
}

// life is that of the credential that is held.
func (s State) life() Life {
	if s.Want.Token() {
		return s.Held.Token
	}
	return s.Held.Certificate
}

// unusable says why what is held cannot be used, empty when it can.
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
		return "the token is of another ServiceAccount"
	case s.Want.Token() && s.Infrastructure != "" && l.UID != s.Infrastructure:
		return "the ServiceAccount of the token was made anew"
	}
	return ""
}

func (s State) serviceAccount() string {
	return s.Want.Cluster + "/" + s.Want.account()
}

func (s State) good() string {
	if s.Want.Token() {
		return "Addon token refreshed, expires at " + request.Stamp(s.life().Until)
	}
	return fmt.Sprintf("secret %s/%s holds a certificate that is valid until %s", s.Want.Namespace, s.Want.Name, request.Stamp(s.life().Until))
}

// homeless is the plan while the namespace of a new secret is not there.
func (s State) homeless() (request.Plan, bool) {
	if s.Held != nil || s.Namespace == Present {
		return request.Plan{}, false
	}
	p := request.Plan{Stage: request.Preparing, Message: fmt.Sprintf("namespace %s does not exist on the cluster", s.Want.Namespace)}
	if s.Namespace == Unknown {
		p.Message, p.RequeueAfter = fmt.Sprintf("looking for namespace %s on the cluster", s.Want.Namespace), request.Recheck
	}
	return p, true
}

// token is the plan on the way to a new token.
func (s State) token() request.Plan {
	if s.Waiting != "" {
		return request.Plan{Stage: request.Preparing, Message: s.Waiting}
	}
	if p, ok := s.homeless(); ok {
		return p
	}
	return request.Plan{Step: stepToken, Stage: request.Preparing, Message: "asking for a token"}
}

// home is the plan for a certificate that is to be kept: it is held with its
// request while there is no namespace for it.
func (s State) home(p request.Plan) request.Plan {
	wait, ok := s.homeless()
	switch {
	case !ok:
		return p
	case s.Namespace == Missing && len(s.Pending.Pending.Certificate) == 0:
		wait.Step = stepHold
	}
	return wait
}

// current tells whether what is pending is for the registration of now.
func (s State) current() bool { return s.Pending != nil && s.Pending.Digest == s.Digest }

// watched is the name of the request whose answer is waited for, if any.
func (s State) watched() string {
	if s.Want.Problem != "" || s.Want.Token() || !s.current() || len(s.Pending.Pending.Certificate) > 0 {
		return ""
	}
	if s.Held != nil && s.Held.Digest == s.Digest && s.unusable() == "" && s.Now.Before(request.Due(s.life().Renew, s.KeptAt)) {
		return ""
	}
	return s.Pending.Pending.Request
}
