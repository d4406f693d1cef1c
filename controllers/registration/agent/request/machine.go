// SPDX-License-Identifier: Apache-2.0

package request

import (
	"crypto/x509"
	"fmt"
	"time"
)

const (
	// settle is how long a credential is left alone after it was kept, and how long a created
	// request may be unknown to the hub before a new one is started.
	settle = 10 * time.Second
	// Recheck is how soon the state of an unresponsive hub is checked again.
	Recheck = 2 * time.Second
)

// Step is the one action a pass takes towards a credential. Packages that keep a credential
// may define steps of their own, from StepOwn on.
type Step int

// The steps.
const (
	// StepNone waits for an event or a time.
	StepNone Step = iota
	// StepBegin makes a key and a name and stores them.
	StepBegin
	// StepRestart does the same for a request that the watch no longer shows, once a read
	// confirms that it is gone: see confirmGone.
	StepRestart
	// StepAsk creates the certificate request.
	StepAsk
	// StepKeep stores the issued certificate.
	StepKeep
	// StepRewrite updates what is stored beside the certificate.
	StepRewrite
	// StepPostpone records that the request was denied.
	StepPostpone
	// StepForget removes the pending request.
	StepForget
	// StepOwn is the first step a keeper may define itself.
	StepOwn
)

// Stage is the state of a credential.
type Stage int

// The stages.
const (
	// Serving means that there is a valid credential.
	Serving Stage = iota
	// Preparing means that one is being requested, or that the hub's answer is needed first.
	Preparing
	// Waiting means that the hub has a request that is not answered yet.
	Waiting
	// Denied means that the hub denied a request, which will be retried.
	Denied
)

// State is the input of the decision, whoever the credential is for.
type State struct {
	Now time.Time
	// Unusable is why the stored credential cannot be used; empty when it can. A valid one is
	// renewed at Renew, and checked every Every, because clocks get set.
	Unusable string
	Renew    time.Time
	Every    time.Duration
	// KeptAt is when this process stored it; zero if that was before it started.
	KeptAt time.Time
	// Meant is true when it was made for what is wanted now, Stale when what is stored beside
	// it must be rewritten.
	Meant, Stale bool
	// Noted is true when something is pending, Current when it is for what is wanted now,
	// Done when its certificate is the one stored.
	Noted, Current, Done bool
	Pending              Pending
	// Anew is why a new request is started before a denied one is due again; empty when there
	// is no reason.
	Anew string
	// Recall keeps showing the reason of a denial until the next request is made.
	Recall bool
	// Answer is the hub's view of the pending request; Asked is when this process created it,
	// zero if it did not.
	Answer Answer
	Asked  time.Time
	// Check returns why an issued certificate is not the one requested.
	Check func(leaf *x509.Certificate) error
}

// Plan is what one pass does.
type Plan struct {
	Step  Step
	Stage Stage
	// Message is for users; empty while the credential is valid.
	Message string
	// Attempt is the number of denials to record, Reason the hub's reason for the last.
	Attempt int
	Reason  string
	// Certificate is the issued certificate to store, as PEM.
	Certificate []byte
	// Begun is true when a request exists and its answer was decisive.
	Begun bool
	// RequeueAfter is when to check again; zero waits for an event.
	RequeueAfter time.Duration
}

// Due returns when a credential is renewed: at renew, but not right after it was stored.
func Due(renew, keptAt time.Time) time.Time {
	if soonest := keptAt.Add(settle); !keptAt.IsZero() && renew.Before(soonest) {
		return soonest
	}
	return renew
}

// Rest returns the plan while no new credential is needed; ok is false when one is.
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
		// Its answer is stored and has served its purpose: the next request starts afresh.
		p.Step = StepForget
		if s.Unusable != "" {
			p.Stage, p.Message = Preparing, s.Unusable
		}
		return p, true
	}
	// The unusable credential was issued just now: without a pause, a hub that issues
	// unusable ones would be asked endlessly.
	wait := s.KeptAt.Add(settle).Sub(s.Now)
	if s.KeptAt.IsZero() || s.Noted || !s.Meant || wait <= 0 {
		return Plan{}, false
	}
	return Plan{Stage: Preparing, Message: s.Unusable, RequeueAfter: wait}, true
}

// Request returns the plan for getting a new certificate.
func (s State) Request() Plan {
	p := Plan{Stage: Preparing, Attempt: s.Pending.Attempt, Message: "preparing a certificate request"}
	again, wait := s.Pending.RetryAfter, s.Pending.RetryAfter.Sub(s.Now)
	switch {
	case !s.Current:
		p.Step, p.Attempt = StepBegin, 0
	case !again.IsZero() && s.Anew != "":
		p.Step, p.Attempt, p.Message = StepBegin, 0, s.Anew
	// A wait longer than any delay comes from a clock that was set back.
	case !again.IsZero() && wait > 0 && wait <= retryDelay(s.Pending.Attempt):
		p.Stage, p.RequeueAfter = Denied, wait
		p.Message = fmt.Sprintf("the hub denied the certificate request: %s; attempt %d follows at %s",
			s.Pending.Reason, s.Pending.Attempt+1, Stamp(again))
	case !again.IsZero() && s.Recall:
		p.Step, p.Reason, p.Message = StepBegin, s.Pending.Reason, askingAgain+s.Pending.Reason
	case s.Pending.Request == "" || len(s.Pending.Key) == 0:
		p.Step = StepBegin
	case len(s.Pending.Certificate) > 0:
		return s.planKeep(p, s.Pending.Certificate)
	default:
		return s.planFromAnswer()
	}
	return p
}

const askingAgain = "asking again after a denied request: "

// planFromAnswer returns the plan that follows from the hub's view of the request.
func (s State) planFromAnswer() Plan {
	p := s.Answer.judge(s.Pending.Request, s.Now, s.Asked)
	p.Begun, p.Attempt = true, s.Pending.Attempt
	switch {
	case p.Step == StepPostpone:
		return s.planDenied(p, p.Message)
	case p.Step == StepKeep:
		return s.planKeep(p, s.Answer.Certificate)
	case s.Recall && !s.Answer.Known && s.Answer.Problem == "" && s.Pending.Reason != "":
		p.Message = askingAgain + s.Pending.Reason
	}
	return p
}

// judge returns what follows from the hub's view of the request of that name, which this
// process created at asked; zero if it did not. A request that was only begun is created
// whenever the hub does not show it, however long that took: if it were started again instead,
// a slow hub would never receive one. A denial and an issued certificate are not evaluated yet.
func (a Answer) judge(name string, now, asked time.Time) Plan {
	switch {
	case a.Problem != "" && a.Found && !a.Denied && len(a.Certificate) == 0:
		why := fmt.Sprintf("it is not known whether certificate request %s was answered: %s", name, a.Problem)
		return Plan{Stage: Preparing, Message: why, RequeueAfter: Recheck}
	case !a.Found && a.Problem != "":
		return Plan{Stage: Preparing, Message: a.Problem, RequeueAfter: Recheck}
	case !a.Known:
		return Plan{Stage: Preparing, Message: "waiting for an answer from the hub", RequeueAfter: Recheck}
	case !a.Found:
		return judgeAbsent(asked, now.Sub(asked))
	case a.Denied:
		return Plan{Step: StepPostpone, Stage: Denied, Message: a.Message}
	case len(a.Certificate) > 0:
		return Plan{Step: StepKeep, Stage: Preparing, Message: "keeping the issued certificate"}
	case a.Approved:
		return Plan{Stage: Waiting, Message: fmt.Sprintf("certificate request %s is approved and waits for the signer on the hub", name)}
	}
	return Plan{Stage: Waiting, Message: fmt.Sprintf("certificate request %s waits for approval on the hub", name)}
}

// judgeAbsent returns what follows when the hub does not show a request of that age.
func judgeAbsent(asked time.Time, age time.Duration) Plan {
	switch {
	case asked.IsZero():
		return Plan{Step: StepAsk, Stage: Preparing, Message: "asking for a certificate"}
	case age > settle || age < 0:
		return Plan{Step: StepRestart, Stage: Preparing, Message: "the hub no longer shows the certificate request: asking again once it is gone"}
	}
	// It is not shown yet, or was removed at once. If it were sent again now, a hub that
	// removes requests would be asked endlessly.
	return Plan{Stage: Preparing, Message: "waiting for the hub to show the certificate request", RequeueAfter: settle - age + time.Second}
}

// planKeep returns the plan for an issued certificate. A certificate that is not the one
// requested counts as a denial: without the delay, a hub that issues such certificates would
// be asked endlessly.
func (s State) planKeep(p Plan, certificate []byte) Plan {
	chain, err := parseIssued(certificate, s.Pending.Key)
	if err == nil {
		err = s.Check(chain[0])
	}
	if err != nil {
		return s.planDenied(p, err.Error())
	}
	p.Step, p.Message, p.Certificate = StepKeep, "keeping the issued certificate", certificate
	return p
}

func (s State) planDenied(p Plan, reason string) Plan {
	p.Step, p.Stage, p.Attempt, p.Reason = StepPostpone, Denied, s.Pending.Attempt+1, reason
	p.Message = fmt.Sprintf("the hub denied certificate request %s: %s", s.Pending.Request, reason)
	return p
}

// Stamp formats a time for a message.
func Stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
