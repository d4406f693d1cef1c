// SPDX-License-Identifier: Apache-2.0

package addoncredential

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/request"
)

// Times of the state machine.
const (
	// longest is how long a credential is not looked at, so that a clock that was
	// set does not let it expire.
	longest = time.Hour
)

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

// Step is the one thing that a pass does for a registration.
type Step int

// The steps.
const (
	// StepNone waits for an event or a time.
	StepNone Step = iota
	// StepDrop removes a credential that was made for another registration.
	StepDrop
	// StepBegin makes a key and a name and keeps them.
	StepBegin
	// StepAsk creates the certificate request.
	StepAsk
	// StepHold keeps the issued certificate with its key, until there is a
	// namespace for it.
	StepHold
	// StepKeep keeps the issued certificate where the add-on finds it.
	StepKeep
	// StepToken asks for a token and keeps it.
	StepToken
	// StepRewrite brings kubeconfig and cluster name in line.
	StepRewrite
	// StepPostpone notes that the request was denied.
	StepPostpone
	// StepForget removes what is pending.
	StepForget
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
	Step Step
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
// on to its renewal (registration.md 11).
func Decide(s State) Plan {
	switch {
	case s.Want.Problem != "":
		// What the add-on has is left to it.
		return Plan{Phase: PhaseFailed, Message: s.Want.Problem}
	case s.Deleting && (s.Held == nil || s.Held.Digest != s.Digest):
		return Plan{}
	case s.Held != nil && s.Held.Digest != s.Digest:
		return Plan{Step: StepDrop, Phase: PhaseWaiting, Message: "the registration changed: the old credential is removed"}
	}
	problem := s.unusable()
	if problem == "" && s.Now.Before(s.renewAt()) {
		return s.serving()
	}
	if s.fulfilled() {
		// Its answer is kept, and of no use any more: the next one begins anew.
		p := Plan{Step: StepForget, Phase: PhaseWaiting, Message: problem}
		if problem == "" {
			p.Phase, p.Message = PhaseServing, s.good()
		}
		return p
	}
	if wait := s.settling(); wait > 0 {
		return Plan{Phase: PhaseWaiting, Message: problem, RequeueAfter: wait}
	}
	if problem == "" {
		return s.renewal()
	}
	return s.next()
}

// next is the plan on the way to a new credential.
func (s State) next() Plan {
	if s.Want.Token() {
		return s.token()
	}
	return s.request()
}

// renewal is the plan on the way to a new credential while the old one is good:
// that it is under way is no news, that it failed is.
func (s State) renewal() Plan {
	p := s.next()
	if p.Phase != PhaseWaiting {
		return p
	}
	p.Phase, p.Message = PhaseServing, s.good()
	if left := min(s.life().Until.Sub(s.Now), longest); p.RequeueAfter == 0 || left < p.RequeueAfter {
		p.RequeueAfter = left
	}
	return p
}

// settling is how long to wait with another request because the credential that
// is of no use was given just now. It keeps a hub that gives expired ones from
// being asked without end.
func (s State) settling() time.Duration {
	if s.KeptAt.IsZero() || s.Held == nil || s.Pending != nil {
		return 0
	}
	return s.KeptAt.Add(request.Settle).Sub(s.Now)
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
		return "the credential expired at " + stamp(l.Until)
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

// renewAt is when the credential that is held is renewed.
func (s State) renewAt() time.Time {
	at := s.life().Renew
	if soonest := s.KeptAt.Add(request.Settle); !s.KeptAt.IsZero() && at.Before(soonest) {
		return soonest
	}
	return at
}

func (s State) good() string {
	if s.Want.Token() {
		return "Addon token refreshed, expires at " + stamp(s.life().Until)
	}
	return fmt.Sprintf("secret %s/%s holds a certificate that is valid until %s", s.Want.Namespace, s.Want.Name, stamp(s.life().Until))
}

// serving is the plan while the credential is valid and fresh.
func (s State) serving() Plan {
	p := Plan{Phase: PhaseServing, Message: s.good()}
	switch {
	case s.Held.Kubeconfig != s.Kubeconfig || s.Held.Cluster != s.Want.Cluster:
		p.Step = StepRewrite
	case s.Pending != nil:
		p.Step = StepForget
	default:
		p.RequeueAfter = min(s.renewAt().Sub(s.Now), longest)
	}
	return p
}

// homeless is the plan while the namespace of a new secret is not there.
func (s State) homeless() (Plan, bool) {
	if s.Held != nil || s.Namespace == Present {
		return Plan{}, false
	}
	p := Plan{Phase: PhaseWaiting, Message: fmt.Sprintf("namespace %s does not exist on the cluster", s.Want.Namespace)}
	if s.Namespace == Unknown {
		p.Message, p.RequeueAfter = fmt.Sprintf("looking for namespace %s on the cluster", s.Want.Namespace), request.Recheck
	}
	return p, true
}

// token is the plan on the way to a new token.
func (s State) token() Plan {
	if s.Waiting != "" {
		return Plan{Phase: PhaseWaiting, Message: s.Waiting}
	}
	if p, ok := s.homeless(); ok {
		return p
	}
	return Plan{Step: StepToken, Phase: PhaseWaiting, Message: "asking for a token"}
}

// current tells whether what is pending is for the registration of now.
func (s State) current() bool { return s.Pending != nil && s.Pending.Digest == s.Digest }

// watched is the name of the request whose answer is waited for, if any.
func (s State) watched() string {
	if s.Want.Problem != "" || s.Want.Token() || !s.current() || len(s.Pending.Pending.Certificate) > 0 {
		return ""
	}
	if s.Held != nil && s.Held.Digest == s.Digest && s.unusable() == "" && s.Now.Before(s.renewAt()) {
		return ""
	}
	return s.Pending.Pending.Request
}

// request is the plan on the way to a new certificate.
func (s State) request() Plan {
	p := Plan{Phase: PhaseWaiting, Message: "preparing a certificate request"}
	if !s.current() {
		p.Step = StepBegin
		return p
	}
	pending := s.Pending.Pending
	p.Attempt = pending.Attempt
	switch wait := pending.RetryAfter.Sub(s.Now); {
	// What is longer than any pause is left by a clock that was set back.
	case !pending.RetryAfter.IsZero() && wait > 0 && wait <= request.RetryDelay(pending.Attempt):
		p.Phase, p.RequeueAfter = PhaseFailed, wait
		p.Message = fmt.Sprintf("the hub denied the certificate request: %s; attempt %d follows at %s", pending.Reason, pending.Attempt+1, stamp(pending.RetryAfter))
	case pending.Request == "" || len(pending.Key) == 0:
		p.Step = StepBegin
	case len(pending.Certificate) > 0:
		return s.keep(p, pending.Certificate, StepNone)
	default:
		return s.answer(p)
	}
	return p
}

// answer is the plan by what the hub shows of the request.
func (s State) answer(p Plan) Plan {
	j := s.Answer.Judge(s.Pending.Pending.Request, s.Now, s.Asked)
	p.Message, p.RequeueAfter = j.Message, j.After
	switch j.Verdict {
	case request.Lost:
		p.Step = StepBegin
	case request.Unsent:
		p.Step = StepAsk
	case request.Refused:
		return s.denied(p, j.Message)
	case request.Signed:
		return s.keep(p, s.Answer.Certificate, StepHold)
	case request.Unclear, request.Open:
	}
	return p
}

func (s State) denied(p Plan, reason string) Plan {
	p.Step, p.Phase, p.Attempt, p.Reason = StepPostpone, PhaseFailed, p.Attempt+1, reason
	p.Message = fmt.Sprintf("the hub denied certificate request %s: %s", s.Pending.Pending.Request, reason)
	return p
}

// keep is the plan for an issued certificate. One that is not what was asked for
// counts as a denial, or a signer that changes subjects would be asked without
// end. Homeless is the step while there is no namespace for it.
func (s State) keep(p Plan, certificate []byte, homeless Step) Plan {
	chain, err := request.Issued(certificate, s.Pending.Pending.Key)
	switch {
	case err != nil:
		return s.denied(p, err.Error())
	case !sameSubject(chain[0].Subject, s.Want.Subject):
		return s.denied(p, "the issued certificate is for another subject")
	}
	if wait, ok := s.homeless(); ok {
		if s.Namespace == Missing {
			wait.Step = homeless
		}
		return wait
	}
	p.Step, p.Message = StepKeep, "keeping the issued certificate"
	return p
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
