// SPDX-License-Identifier: Apache-2.0

package credential

import (
	"bytes"
	"fmt"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/request"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/kubeconfig"
)

// Times of the state machine.
const (
	// clockEvery is how often the clock is compared with a certificate: timers do
	// not notice that it was set, or that the machine slept.
	clockEvery = 5 * time.Minute
)

// Phase is where an agent stands with its hub.
type Phase string

// The phases, in the order in which a join passes them.
const (
	// PhaseStopped means that nobody told the agent to register.
	PhaseStopped Phase = "Stopped"
	// PhaseNoBootstrap means that there is no usable bootstrap secret.
	PhaseNoBootstrap Phase = "NoBootstrapSecret"
	// PhaseConnecting means that the hub did not answer or refused a request.
	PhaseConnecting Phase = "Connecting"
	// PhaseThrottled means that the hub holds too many requests of this cluster.
	PhaseThrottled Phase = "TooManyRequests"
	// PhaseWaiting means that the certificate request is not answered yet.
	PhaseWaiting Phase = "WaitingForApproval"
	// PhaseDenied means that the request was denied and will be repeated.
	PhaseDenied Phase = "Denied"
	// PhaseServing means that the agent has access.
	PhaseServing Phase = "Serving"
)

// Step is the one thing that a pass does.
type Step int

// The steps.
const (
	// StepNone waits for an event or a time.
	StepNone Step = iota
	// StepBegin makes a key and a name and keeps them.
	StepBegin
	// StepJoin makes sure that the ManagedCluster exists.
	StepJoin
	// StepAsk creates the certificate request.
	StepAsk
	// StepKeep keeps the issued certificate.
	StepKeep
	// StepTry shows the kept certificate to a hub that may have moved.
	StepTry
	// StepRewrite brings the kept kubeconfig in line with the bootstrap one.
	StepRewrite
	// StepPostpone notes that the request was denied.
	StepPostpone
	// StepForget removes what is pending.
	StepForget
)

// Request is what the hub shows of the pending request.
type Request = request.Answer

// State is what a decision is made on.
type State struct {
	Now       time.Time
	Identity  agent.Identity
	Bootstrap Bootstrap
	Kept      Kept
	Pending   Pending
	Request   Request
	// Trial is what a hub that may have moved said to the kept certificate.
	Trial Trial
	// JoinDue tells that it is time to look whether the ManagedCluster exists.
	JoinDue bool
	// Asked is when this process created the pending request; zero when it did
	// not.
	Asked time.Time
	// KeptAt is when this process kept the certificate; zero: before it started.
	KeptAt time.Time
}

// Plan is what a pass does.
type Plan struct {
	Step Step
	// Own tells that the kept access is valid: a session runs, and requests go
	// out under the agent's own identity instead of the bootstrap one.
	Own bool
	// Phase and Message are reported.
	Phase   Phase
	Message string
	// Renewal is the phase of a request that is made while access is valid.
	Renewal Phase
	// Attempt is the number of denials to note down, Reason what the hub said
	// to the last.
	Attempt int
	Reason  string
	// RequeueAfter is when to look again; zero waits for an event.
	RequeueAfter time.Duration
}

// Decide chooses the next step from the bootstrap secret to a valid hub
// kubeconfig, and on to its renewal (registration.md 3.3 and 3.4).
func Decide(s State) Plan {
	problem := s.unusable()
	if problem == "" && s.Now.Before(s.renewAt()) {
		return s.serving()
	}
	if problem != "" && s.Bootstrap.Config == nil {
		return Plan{Phase: PhaseNoBootstrap, Message: s.Bootstrap.Problem}
	}
	if s.fulfilled() {
		// Its answer is kept, and of no use any more: the next one begins anew.
		p := Plan{Step: StepForget, Own: problem == "", Phase: PhaseConnecting, Message: problem}
		if p.Own {
			p.Phase, p.Message = PhaseServing, "certificate valid until "+stamp(s.Kept.Expires)
		}
		return p
	}
	if p, ok := s.transfer(); ok {
		return p
	}
	if wait := s.settling(); wait > 0 {
		return Plan{Phase: PhaseConnecting, Message: problem, RequeueAfter: wait}
	}
	s.JoinDue = s.JoinDue && problem != ""
	p := s.request()
	if problem == "" {
		// A renewal never takes away what works.
		p.Own, p.Renewal, p.Phase = true, p.Phase, PhaseServing
		p.Message = fmt.Sprintf("renewing the certificate that expires at %s: %s", stamp(s.Kept.Expires), p.Message)
		if left := s.Kept.Expires.Sub(s.Now); p.RequeueAfter == 0 || left < p.RequeueAfter {
			p.RequeueAfter = left
		}
	}
	return p
}

// unusable says why the kept access cannot be used, empty when it can.
func (s State) unusable() string {
	switch {
	case s.Kept.Problem != "":
		return s.Kept.Problem
	case s.Kept.Identity != s.Identity:
		return fmt.Sprintf("the kept access is of agent %s:%s", s.Kept.Identity.Cluster, s.Kept.Identity.Agent)
	case fits(s.Kept.Leaf, s.Identity) != "":
		return fits(s.Kept.Leaf, s.Identity)
	case !s.Now.Before(s.Kept.Expires):
		return "the certificate expired at " + stamp(s.Kept.Expires)
	case s.Bootstrap.Config != nil && s.Kept.Config.Difference(s.Bootstrap.Config) != "":
		return "the bootstrap kubeconfig names another hub: different " + s.Kept.Config.Difference(s.Bootstrap.Config)
	}
	return ""
}

// settling is how long to wait with another request because the certificate
// that is of no use was issued just now, for this same hub and identity. It
// keeps a hub that issues expired certificates from being asked without end.
func (s State) settling() time.Duration {
	if s.KeptAt.IsZero() || s.Pending.Secret != nil || s.Kept.Config == nil || s.Kept.Identity != s.Identity ||
		(s.Bootstrap.Config != nil && s.Kept.Config.Difference(s.Bootstrap.Config) != "") {
		return 0
	}
	return s.KeptAt.Add(request.Settle).Sub(s.Now)
}

// serving is the plan while the access is valid and fresh.
func (s State) serving() Plan {
	p := Plan{Own: true, Phase: PhaseServing, Message: "certificate valid until " + stamp(s.Kept.Expires)}
	switch {
	case s.Bootstrap.Config != nil && s.Kept.Config.TLSServerName != s.Bootstrap.Config.TLSServerName:
		p.Step = StepRewrite
	case s.Pending.Secret != nil:
		p.Step = StepForget
	default:
		p.RequeueAfter = min(s.renewAt().Sub(s.Now), clockEvery)
	}
	if from := s.Kept.Leaf.NotBefore; s.Now.Before(from) {
		// It is the hub's clock that counts, so the certificate is used.
		p.Message = fmt.Sprintf("the certificate is valid from %s on, which this clock has not reached: compare the clocks of cluster and hub", stamp(from))
	}
	return p
}

// renewAt is when the kept certificate is renewed.
func (s State) renewAt() time.Time {
	at := request.RenewAt(s.Kept.Leaf, s.Kept.Expires)
	if soonest := s.KeptAt.Add(request.Settle); !s.KeptAt.IsZero() && at.Before(soonest) {
		return soonest
	}
	return at
}

// target is the hub that access is wanted to.
func (s State) target() *kubeconfig.Config {
	if s.Bootstrap.Config != nil {
		return s.Bootstrap.Config
	}
	return s.Kept.Config
}

// current tells whether what is pending is for the hub and identity of now.
func (s State) current() bool {
	return s.Pending.Secret != nil && s.Pending.Hub == s.target().ID() && s.Pending.Identity == s.Identity
}

// fulfilled tells whether the certificate of what is pending is the kept one.
func (s State) fulfilled() bool {
	return s.Pending.Secret != nil && s.Kept.Config != nil && len(s.Pending.Key) > 0 && bytes.Equal(s.Kept.Config.KeyData, s.Pending.Key)
}

// request is the plan on the way to a new certificate.
func (s State) request() Plan {
	p := Plan{Phase: PhaseConnecting, Attempt: s.Pending.Attempt}
	switch {
	case !s.current():
		p.Step, p.Attempt, p.Message = StepBegin, 0, "preparing a certificate request"
	case !s.Pending.RetryAfter.IsZero():
		return s.postponed(p)
	case s.Pending.Request == "" || len(s.Pending.Key) == 0:
		p.Step, p.Message = StepBegin, "preparing a certificate request"
	case s.JoinDue:
		p.Step, p.Message = StepJoin, "looking for the ManagedCluster on the hub"
	default:
		return s.answer(p)
	}
	return p
}

// postponed is the plan after a denial: the next attempt is due in time, or at
// once when somebody brought another bootstrap kubeconfig.
func (s State) postponed(p Plan) Plan {
	wait := s.Pending.RetryAfter.Sub(s.Now)
	// What is longer than any pause is left by a clock that was set back.
	longest := request.RetryDelay(s.Pending.Attempt)
	switch {
	case s.Bootstrap.Digest != s.Pending.Bootstrap:
		p.Step, p.Attempt, p.Message = StepBegin, 0, "the bootstrap kubeconfig changed: asking again"
	case wait <= 0 || wait > longest:
		p.Step, p.Reason, p.Message = StepBegin, s.Pending.Reason, "asking again after a denied request: "+s.Pending.Reason
	default:
		p.Phase, p.RequeueAfter = PhaseDenied, wait
		p.Message = fmt.Sprintf("the hub denied the certificate request: %s; attempt %d follows at %s",
			s.Pending.Reason, s.Pending.Attempt+1, stamp(s.Pending.RetryAfter))
	}
	return p
}

// answer is the plan by what the hub shows of the request.
func (s State) answer(p Plan) Plan {
	j := s.Request.Judge(s.Pending.Request, s.Now, s.Asked)
	p.Message, p.RequeueAfter = j.Message, j.After
	switch j.Verdict {
	case request.Unclear:
		if !s.Request.Known && s.Request.Problem == "" && s.Pending.Reason != "" {
			p.Message = "asking again after a denied request: " + s.Pending.Reason
		}
	case request.Lost:
		p.Step = StepBegin
	case request.Unsent:
		p.Step = StepAsk
	case request.Refused:
		return s.denied(p, j.Message)
	case request.Open:
		// The ManagedCluster is looked for again now and then.
		p.Phase, p.RequeueAfter = PhaseWaiting, joinEvery
	case request.Signed:
		p.Step = StepKeep
		if err := issued(s.Request.Certificate, s.Pending.Key, s.Identity); err != nil {
			// Asked at once, a hub that gives what is of no use would be asked without
			// end.
			return s.denied(p, err.Error())
		}
	}
	return p
}

func (s State) denied(p Plan, reason string) Plan {
	p.Step, p.Phase, p.Attempt, p.Reason = StepPostpone, PhaseDenied, s.Pending.Attempt+1, reason
	p.Message = fmt.Sprintf("the hub denied certificate request %s: %s", s.Pending.Request, reason)
	return p
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
