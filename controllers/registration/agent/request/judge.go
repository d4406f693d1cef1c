// SPDX-License-Identifier: Apache-2.0

package request

import (
	"fmt"
	"time"
)

const (
	// settle is how long a credential is left alone after it was kept, and how
	// long a request that was created may be unknown to the hub before it is begun
	// anew.
	settle = 10 * time.Second
	// Recheck is how soon a hub that does not answer is reported on again.
	Recheck = 2 * time.Second
)

// Verdict is what follows from an Answer.
type Verdict int

// The verdicts.
const (
	// Unclear means that there is nothing to do but to wait for the hub.
	Unclear Verdict = iota
	// Unsent means that the request is to be created.
	Unsent
	// Lost means that the request was there and is no more: one is begun anew.
	Lost
	// Refused means that it was denied or could not be signed.
	Refused
	// Open means that it waits for approval or signature.
	Open
	// Signed means that there is a certificate, which is to be checked.
	Signed
)

// Judgement is a Verdict in words, and when to look again; zero waits for an
// event.
type Judgement struct {
	Verdict Verdict
	Message string
	After   time.Duration
}

// Judge tells where the request of that name stands, which this process created
// at asked: zero when it did not. One that was only begun is asked for whenever
// the hub does not show it, however long that took: were it begun anew, a hub
// that answers slowly would never be asked at all.
func (a Answer) Judge(name string, now, asked time.Time) Judgement {
	switch {
	case a.Problem != "" && a.Found && !a.Denied && len(a.Certificate) == 0:
		return Judgement{Unclear, fmt.Sprintf("whether certificate request %s was answered is not known: %s", name, a.Problem), Recheck}
	case !a.Found:
		return a.missing(now.Sub(asked), asked.IsZero())
	case !a.Known:
		return Judgement{Unclear, "waiting for an answer of the hub", Recheck}
	case a.Denied:
		return Judgement{Verdict: Refused, Message: a.Message}
	case len(a.Certificate) == 0 && a.Approved:
		return Judgement{Verdict: Open, Message: fmt.Sprintf("certificate request %s is approved and waits for the signer on the hub", name)}
	case len(a.Certificate) == 0:
		return Judgement{Verdict: Open, Message: fmt.Sprintf("certificate request %s waits for approval on the hub", name)}
	}
	return Judgement{Verdict: Signed, Message: "keeping the issued certificate"}
}

// missing judges a request that the hub does not show, age after it was created;
// begun tells that it was not.
func (a Answer) missing(age time.Duration, begun bool) Judgement {
	switch {
	case a.Problem != "":
		return Judgement{Unclear, a.Problem, Recheck}
	case !a.Known:
		return Judgement{Unclear, "waiting for an answer of the hub", Recheck}
	case begun:
		return Judgement{Verdict: Unsent, Message: "asking for a certificate"}
	case age > settle || age < 0:
		return Judgement{Verdict: Lost, Message: "the hub does not know the certificate request any more: asking again"}
	}
	// It is not shown yet, or was removed at once: asked again now, a hub that
	// removes requests would be asked without end.
	return Judgement{Unclear, "waiting for the hub to show the certificate request", settle - age + time.Second}
}
