// SPDX-License-Identifier: Apache-2.0

package request

import (
	"crypto/x509"
	"fmt"
	"time"
)

// Step is the one thing that a pass does towards a credential. Who keeps one may
// have steps of its own, from StepOwn on.
type Step int

// The steps.
const (
	// StepNone waits for an event or a time.
	StepNone Step = iota
	// StepBegin makes a key and a name and keeps them.
	StepBegin
	// StepAsk creates the certificate request.
	StepAsk
	// StepKeep keeps the issued certificate.
	StepKeep
	// StepRewrite brings what lies beside the kept certificate in line.
	StepRewrite
	// StepPostpone notes that the request was denied.
	StepPostpone
	// StepForget removes what is pending.
	StepForget
	// StepOwn is the first that a keeper has of its own.
	StepOwn
)

// Stage is where a credential stands.
type Stage int

// The stages.
const (
	// Serving means that there is a good one.
	Serving Stage = iota
	// Preparing means that one is asked for, or that the hub has to be heard first.
	Preparing
	// Waiting means that the hub has a request, which is not answered.
	Waiting
	// Denied means that the hub denied a request, which will be repeated.
	Denied
)

// State is what is decided on, whoever the credential is for.
type State struct {
	Now time.Time
	// Unusable is why what is kept cannot be used, empty when it can. A good one is
	// renewed at Renew, and looked at after Every, because clocks are set.
	Unusable string
	Renew    time.Time
	Every    time.Duration
	// KeptAt is when this process kept it; zero: before it started.
	KeptAt time.Time
	// Meant tells that it was made for what is wanted now, Stale that what lies
	// beside it has to be written.
	Meant, Stale bool
	// Noted tells that there is something pending, Current that it is for what is
	// wanted now, Done that its certificate is the one that is kept.
	Noted, Current, Done bool
	Pending              Pending
	// Certificate is what was issued for it, where that is held already.
	Certificate []byte
	// Anew is why a denied request is not waited for, empty when it is.
	Anew string
	// Recall tells the reason of a denial until the next request is made.
	Recall bool
	// Answer is what the hub shows of the pending request, and Asked when this
	// process created it: zero when it did not.
	Answer Answer
	Asked  time.Time
	// Check tells why an issued certificate is not the one that was asked for.
	Check func(leaf *x509.Certificate) error
}

// Plan is what a pass does.
type Plan struct {
	Step  Step
	Stage Stage
	// Message is for people; empty while the credential is good.
	Message string
	// Attempt is the number of denials to note down, Reason what the hub said to
	// the last.
	Attempt int
	Reason  string
	// Begun tells that there is a request, and that its answer decided.
	Begun bool
	// RequeueAfter is when to look again; zero waits for an event.
	RequeueAfter time.Duration
}

// Due is when a credential is renewed: at renew, and not just after it was kept.
func Due(renew, keptAt time.Time) time.Time {
	if soonest := keptAt.Add(settle); !keptAt.IsZero() && renew.Before(soonest) {
		return soonest
	}
	return renew
}

// Rest is the plan while no other credential is asked for; ok is false when it is
// time for that.
func (s State) Rest() (p Plan, ok bool) {
	due := Due(s.Renew, s.KeptAt)
	switch {
	case s.Unusable == "" && s.Now.Before(due):
		switch {
		case s.Stale:
			p.Step = StepRewrite
		case s.Noted:
			p.Step = StepForget
		default:
			p.RequeueAfter = min(due.Sub(s.Now), s.Every)
		}
		return p, true
	case s.Done:
		// Its answer is kept, and of no use any more: the next one begins anew.
		p.Step = StepForget
		if s.Unusable != "" {
			p.Stage, p.Message = Preparing, s.Unusable
		}
		return p, true
	}
	// What is of no use was issued just now: a hub that issues such things would
	// be asked without end.
	wait := s.KeptAt.Add(settle).Sub(s.Now)
	if s.KeptAt.IsZero() || s.Noted || !s.Meant || wait <= 0 {
		return Plan{}, false
	}
	return Plan{Stage: Preparing, Message: s.Unusable, RequeueAfter: wait}, true
}

// Request is the plan on the way to another certificate.
func (s State) Request() Plan {
	p := Plan{Stage: Preparing, Attempt: s.Pending.Attempt, Message: "preparing a certificate request"}
	again, wait := s.Pending.RetryAfter, s.Pending.RetryAfter.Sub(s.Now)
	switch {
	case !s.Current:
		p.Step, p.Attempt = StepBegin, 0
	case !again.IsZero() && s.Anew != "":
		p.Step, p.Attempt, p.Message = StepBegin, 0, s.Anew
	// What is longer than any pause is left by a clock that was set back.
	case !again.IsZero() && wait > 0 && wait <= retryDelay(s.Pending.Attempt):
		p.Stage, p.RequeueAfter = Denied, wait
		p.Message = fmt.Sprintf("the hub denied the certificate request: %s; attempt %d follows at %s",
			s.Pending.Reason, s.Pending.Attempt+1, Stamp(again))
	case !again.IsZero() && s.Recall:
		p.Step, p.Reason, p.Message = StepBegin, s.Pending.Reason, askingAgain+s.Pending.Reason
	case s.Pending.Request == "" || len(s.Pending.Key) == 0:
		p.Step = StepBegin
	case len(s.Certificate) > 0:
		return s.keep(p, s.Certificate)
	default:
		return s.answer(p)
	}
	return p
}

const askingAgain = "asking again after a denied request: "

// answer is the plan by what the hub shows of the request.
func (s State) answer(p Plan) Plan {
	j := s.Answer.Judge(s.Pending.Request, s.Now, s.Asked)
	p.Begun, p.Message, p.RequeueAfter = true, j.Message, j.After
	switch j.Verdict {
	case Unclear:
		if s.Recall && !s.Answer.Known && s.Answer.Problem == "" && s.Pending.Reason != "" {
			p.Message = askingAgain + s.Pending.Reason
		}
	case Lost:
		p.Step = StepBegin
	case Unsent:
		p.Step = StepAsk
	case Refused:
		return s.denied(p, j.Message)
	case Open:
		p.Stage = Waiting
	case Signed:
		return s.keep(p, s.Answer.Certificate)
	}
	return p
}

// keep is the plan for an issued certificate. One that is not what was asked for
// counts as a denial: asked at once, a hub that gives such would be asked without
// end.
func (s State) keep(p Plan, certificate []byte) Plan {
	chain, err := issued(certificate, s.Pending.Key)
	if err == nil {
		err = s.Check(chain[0])
	}
	if err != nil {
		return s.denied(p, err.Error())
	}
	p.Step, p.Message = StepKeep, "keeping the issued certificate"
	return p
}

func (s State) denied(p Plan, reason string) Plan {
	p.Step, p.Stage, p.Attempt, p.Reason = StepPostpone, Denied, s.Pending.Attempt+1, reason
	p.Message = fmt.Sprintf("the hub denied certificate request %s: %s", s.Pending.Request, reason)
	return p
}

// Stamp is a time in a message.
func Stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
