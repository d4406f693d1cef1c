// SPDX-License-Identifier: Apache-2.0

package request

import (
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

// Verdict is the conclusion from an Answer.
type Verdict int

// The verdicts.
const (
	// Unclear means that all that can be done is to wait for the hub.
	Unclear Verdict = iota
	// Unsent means that the request must be created.
	Unsent
	// Lost means that the request existed and is gone: a new one is started.
	Lost
	// Refused means that it was denied or could not be signed.
	Refused
	// Open means that it is waiting for approval or signature.
	Open
	// Signed means that a certificate was issued, which must be checked.
	Signed
)

// Judgement is a Verdict with a message, and the delay before checking again; zero waits for
// an event.
type Judgement struct {
	Verdict Verdict
	Message string
	After   time.Duration
}

// Judge evaluates the request of that name, which this process created at asked; zero if it
// did not. A request that was only begun is created whenever the hub does not show it,
// however long that took: if it were started again instead, a slow hub would never receive
// one.
func (a Answer) Judge(name string, now, asked time.Time) Judgement {
	switch {
	case a.Problem != "" && a.Found && !a.Denied && len(a.Certificate) == 0:
		return Judgement{Unclear, fmt.Sprintf("it is not known whether certificate request %s was answered: %s", name, a.Problem), Recheck}
	case !a.Found:
		return a.judgeMissing(now.Sub(asked), asked.IsZero())
	case !a.Known:
		return Judgement{Unclear, "waiting for an answer from the hub", Recheck}
	case a.Denied:
		return Judgement{Verdict: Refused, Message: a.Message}
	case len(a.Certificate) == 0 && a.Approved:
		return Judgement{Verdict: Open, Message: fmt.Sprintf("certificate request %s is approved and waits for the signer on the hub", name)}
	case len(a.Certificate) == 0:
		return Judgement{Verdict: Open, Message: fmt.Sprintf("certificate request %s waits for approval on the hub", name)}
	}
	return Judgement{Verdict: Signed, Message: "keeping the issued certificate"}
}

// judgeMissing evaluates a request that the hub does not show, age after it was created; begun is
// true when it was not created yet.
func (a Answer) judgeMissing(age time.Duration, begun bool) Judgement {
	switch {
	case a.Problem != "":
		return Judgement{Unclear, a.Problem, Recheck}
	case !a.Known:
		return Judgement{Unclear, "waiting for an answer from the hub", Recheck}
	case begun:
		return Judgement{Verdict: Unsent, Message: "asking for a certificate"}
	case age > settle || age < 0:
		return Judgement{Verdict: Lost, Message: "the hub no longer shows the certificate request: asking again once it is gone"}
	}
	// It is not shown yet, or was removed at once. If it were sent again now, a hub that
	// removes requests would be asked endlessly.
	return Judgement{Unclear, "waiting for the hub to show the certificate request", settle - age + time.Second}
}
