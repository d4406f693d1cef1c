// SPDX-License-Identifier: Apache-2.0

package credential

import (
	"bytes"
	"cmp"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/request"
	"github.com/kubectl-ocm/kubectl-ocm/internal/kubeconfig"
)

// clockEvery is how often the clock is compared with a certificate: timers do not notice that
// the clock was set, or that the machine slept.
const clockEvery = 5 * time.Minute

// Phase is the state of an agent's registration with its hub.
type Phase string

// The phases, in the order in which registration goes through them.
const (
	// PhaseStopped means that the agent is not configured to register.
	PhaseStopped Phase = "Stopped"
	// PhaseNoBootstrap means that there is no usable bootstrap secret.
	PhaseNoBootstrap Phase = "NoBootstrapSecret"
	// PhaseConnecting means that the hub did not answer, or refused a request.
	PhaseConnecting Phase = "Connecting"
	// PhaseThrottled means that the hub holds too many requests for this cluster.
	PhaseThrottled Phase = "TooManyRequests"
	// PhaseWaiting means that the certificate request is not answered yet.
	PhaseWaiting Phase = "WaitingForApproval"
	// PhaseDenied means that the request was denied and will be retried.
	PhaseDenied Phase = "Denied"
	// PhaseServing means that the agent has access.
	PhaseServing Phase = "Serving"
)

// phases maps the stages of a request to phases.
var phases = map[request.Stage]Phase{
	request.Serving: PhaseServing, request.Preparing: PhaseConnecting, request.Waiting: PhaseWaiting, request.Denied: PhaseDenied,
}

// The steps of this certificate, in addition to the common ones.
const (
	// stepJoin makes sure that the ManagedCluster exists.
	stepJoin = request.StepOwn
	// stepTry tries the stored certificate at a hub that may have moved.
	stepTry = request.StepOwn + 1
	// stepInquire asks the hub whether it knows the stored certificate.
	stepInquire = request.StepOwn + 2
)

// State is the input of a decision.
type State struct {
	Now       time.Time
	Identity  agent.Identity
	Bootstrap Bootstrap
	Kept      Kept
	Pending   Pending
	Request   request.Answer
	// Trial is the answer of a hub that may have moved to the stored certificate.
	Trial Trial
	// Unknown is true while the hub refuses requests because it does not know the certificate,
	// Refusal what it said when it was asked.
	Unknown bool
	Refusal Refusal
	// JoinDue is true when it is time to check whether the ManagedCluster exists.
	JoinDue bool
	// Asked is when this process created the pending request; zero if it did not.
	Asked time.Time
	// KeptAt is when this process stored the certificate; zero if that was before it started.
	KeptAt time.Time
}

// Plan is what one pass does.
type Plan struct {
	request.Plan
	// Own is true when the stored access is valid: a session runs, and requests are sent with
	// the agent's own identity instead of the bootstrap one.
	Own bool
	// Phase is reported, with the message.
	Phase Phase
	// Renewal is the phase of a request made while access is valid.
	Renewal Phase
}

// Decide chooses the next step from the bootstrap secret to a valid hub kubeconfig, and on to
// its renewal.
func Decide(s State) Plan {
	problem := s.unusable()
	if problem != "" && s.Bootstrap.Config == nil {
		return Plan{Phase: PhaseNoBootstrap, Plan: request.Plan{Message: s.Bootstrap.Problem}}
	}
	m := s.machine(problem)
	if p, ok := s.transfer(); ok && !m.Done {
		return p
	}
	p, rests := m.Rest()
	if !rests {
		p = m.Request()
	}
	switch {
	case problem != "" && s.JoinDue && p.Begun:
		p = request.Plan{Step: stepJoin, Stage: request.Preparing, Attempt: s.Pending.Attempt, Message: "looking for the ManagedCluster on the hub"}
	case p.Stage == request.Waiting:
		// The ManagedCluster is checked again from time to time.
		p.RequeueAfter = joinEvery
	case p.Stage == request.Serving:
		p.Message = s.validMessage()
	}
	out := Plan{Plan: p, Own: problem == "", Phase: phases[p.Stage]}
	if problem == "" && !rests {
		// A renewal never takes away access that works.
		out.Renewal, out.Phase = out.Phase, PhaseServing
		out.Message = fmt.Sprintf("renewing the certificate that expires at %s: %s", request.Stamp(s.Kept.Expires), p.Message)
		if left := s.Kept.Expires.Sub(s.Now); p.RequeueAfter == 0 || left < p.RequeueAfter {
			out.RequeueAfter = left
		}
	}
	return s.withInquiry(out)
}

// machine returns the input of the state machine common to all certificates.
func (s State) machine(problem string) request.State {
	m := request.State{
		Now: s.Now, Unusable: problem, Every: clockEvery, KeptAt: s.KeptAt, Meant: s.isMeant(),
		Noted: s.Pending.Secret != nil, Current: s.isCurrent(), Done: s.isFulfilled(),
		Pending: s.Pending.Pending, Recall: true, Answer: s.Request, Asked: s.Asked,
		Check: func(leaf *x509.Certificate) error {
			if why := misfit(leaf, s.Identity); why != "" {
				return errors.New(why)
			}
			return nil
		},
	}
	if problem == "" {
		m.Renew, m.Stale = s.renewAt(), s.Bootstrap.Config != nil && s.Kept.Config.TLSServerName != s.Bootstrap.Config.TLSServerName
	}
	if s.Bootstrap.Digest != s.Pending.Bootstrap {
		m.Anew = "the bootstrap kubeconfig changed: asking again"
	}
	return m
}

// unusable returns why the stored access cannot be used; empty when it can.
func (s State) unusable() string {
	switch {
	case s.Kept.Problem != "":
		return s.Kept.Problem
	case s.Kept.Identity != s.Identity:
		return fmt.Sprintf("the kept access belongs to agent %s:%s", s.Kept.Identity.Cluster, s.Kept.Identity.Agent)
	case misfit(s.Kept.Leaf, s.Identity) != "":
		return misfit(s.Kept.Leaf, s.Identity)
	case !s.Now.Before(s.Kept.Expires):
		return "the certificate expired at " + request.Stamp(s.Kept.Expires)
	case s.Bootstrap.Config != nil && s.Kept.Config.Difference(s.Bootstrap.Config) != "":
		return "the bootstrap kubeconfig names another hub: different " + s.Kept.Config.Difference(s.Bootstrap.Config)
	case s.isRefused():
		return "the hub does not know the certificate any more"
	}
	return ""
}

// isMeant reports whether the stored access is to this hub, for this identity.
func (s State) isMeant() bool {
	return s.Kept.Config != nil && s.Kept.Identity == s.Identity &&
		(s.Bootstrap.Config == nil || s.Kept.Config.Difference(s.Bootstrap.Config) == "")
}

// validMessage returns the message for valid access.
func (s State) validMessage() string {
	if from := s.Kept.Leaf.NotBefore; s.Now.Before(from) {
		// The hub's clock decides, so the certificate is used.
		return fmt.Sprintf("the certificate is valid from %s on, which this clock has not reached: compare the clocks of cluster and hub", request.Stamp(from))
	}
	return "certificate valid until " + request.Stamp(s.Kept.Expires)
}

// renewAt returns when the stored certificate is renewed.
func (s State) renewAt() time.Time {
	return request.Due(request.RenewAt(s.Kept.Leaf, s.Kept.Expires), s.KeptAt)
}

// target returns the hub to get access to.
func (s State) target() *kubeconfig.Config {
	return cmp.Or(s.Bootstrap.Config, s.Kept.Config)
}

// isCurrent reports whether the pending request is for the current hub and identity.
func (s State) isCurrent() bool {
	return s.Pending.Secret != nil && s.Pending.Hub == s.target().ID() && s.Pending.Identity == s.Identity
}

// isFulfilled reports whether the pending request's certificate is the stored one.
func (s State) isFulfilled() bool {
	return s.Pending.Secret != nil && s.Kept.Config != nil && len(s.Pending.Key) > 0 && bytes.Equal(s.Kept.Config.KeyData, s.Pending.Key)
}
