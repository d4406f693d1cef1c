// SPDX-License-Identifier: Apache-2.0

package credential

import (
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/request"
	"github.com/kubectl-ocm/kubectl-ocm/internal/kubeconfig"
)

// clockEvery is how often the clock is compared with a certificate: timers do
// not notice that it was set, or that the machine slept.
const clockEvery = 5 * time.Minute

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

// phases are those of the stages of a request.
var phases = map[request.Stage]Phase{
	request.Serving: PhaseServing, request.Preparing: PhaseConnecting, request.Waiting: PhaseWaiting, request.Denied: PhaseDenied,
}

// The steps of this certificate, beside those of every one.
const (
	// stepJoin makes sure that the ManagedCluster exists.
	stepJoin = request.StepOwn
	// stepTry shows the kept certificate to a hub that may have moved.
	stepTry = request.StepOwn + 1
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
	Step request.Step
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
// kubeconfig, and on to its renewal.
func Decide(s State) Plan {
	problem := s.unusable()
	if problem != "" && s.Bootstrap.Config == nil {
		return Plan{Phase: PhaseNoBootstrap, Message: s.Bootstrap.Problem}
	}
	m := s.course(problem)
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
		// The ManagedCluster is looked for again now and then.
		p.RequeueAfter = joinEvery
	case p.Stage == request.Serving:
		p.Message = s.good()
	}
	out := Plan{Step: p.Step, Own: problem == "", Phase: phases[p.Stage], Message: p.Message, Attempt: p.Attempt, Reason: p.Reason, RequeueAfter: p.RequeueAfter}
	if problem == "" && !rests {
		// A renewal never takes away what works.
		out.Renewal, out.Phase = out.Phase, PhaseServing
		out.Message = fmt.Sprintf("renewing the certificate that expires at %s: %s", request.Stamp(s.Kept.Expires), p.Message)
		if left := s.Kept.Expires.Sub(s.Now); p.RequeueAfter == 0 || left < p.RequeueAfter {
			out.RequeueAfter = left
		}
	}
	return out
}

// course is what the certificate of every keeper is decided on.
func (s State) course(problem string) request.State {
	m := request.State{
		Now: s.Now, Unusable: problem, Every: clockEvery, KeptAt: s.KeptAt, Meant: s.meant(),
		Noted: s.Pending.Secret != nil, Current: s.current(), Done: s.fulfilled(),
		Pending: s.Pending.Pending, Recall: true, Answer: s.Request, Asked: s.Asked,
		Check: func(leaf *x509.Certificate) error {
			if why := fits(leaf, s.Identity); why != "" {
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
		return "the certificate expired at " + request.Stamp(s.Kept.Expires)
	case s.Bootstrap.Config != nil && s.Kept.Config.Difference(s.Bootstrap.Config) != "":
		return "the bootstrap kubeconfig names another hub: different " + s.Kept.Config.Difference(s.Bootstrap.Config)
	}
	return ""
}

// meant tells whether the kept access is to this hub, for this identity.
func (s State) meant() bool {
	return s.Kept.Config != nil && s.Kept.Identity == s.Identity &&
		(s.Bootstrap.Config == nil || s.Kept.Config.Difference(s.Bootstrap.Config) == "")
}

// good is what is told of a valid access.
func (s State) good() string {
	if from := s.Kept.Leaf.NotBefore; s.Now.Before(from) {
		// It is the hub's clock that counts, so the certificate is used.
		return fmt.Sprintf("the certificate is valid from %s on, which this clock has not reached: compare the clocks of cluster and hub", request.Stamp(from))
	}
	return "certificate valid until " + request.Stamp(s.Kept.Expires)
}

// renewAt is when the kept certificate is renewed.
func (s State) renewAt() time.Time {
	return request.Due(request.RenewAt(s.Kept.Leaf, s.Kept.Expires), s.KeptAt)
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
