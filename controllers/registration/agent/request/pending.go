// SPDX-License-Identifier: Apache-2.0

package request

import (
	"strconv"
	"time"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

// Keys of a secret that holds what is pending, beside tls.key. They are this
// agent's own; no other program reads them.
const (
	pendingRequest = "csr-name"
	pendingAttempt = "attempt"
	pendingRetry   = "retry-after"
	pendingReason  = "reason"
)

// Pending is a certificate request that is under way, or the time at which the
// next one may be made.
type Pending struct {
	// Request is the name of the request; empty while RetryAfter is waited for.
	Request string
	// Key is the private key as PEM.
	Key []byte
	// Attempt counts the requests that were denied in a row.
	Attempt int
	// RetryAfter is when a denied request may be repeated; else zero. Reason is
	// what the hub said.
	RetryAfter time.Time
	Reason     string
}

// ReadPending reads what Data wrote. Content that cannot be read counts as
// absent; the request is begun anew.
func ReadPending(data map[string][]byte) Pending {
	p := Pending{Request: string(data[pendingRequest]), Key: data[clusterv1.SecretKeyTLSKey], Reason: string(data[pendingReason])}
	p.RetryAfter, _ = time.Parse(time.RFC3339, string(data[pendingRetry]))
	p.Attempt, _ = strconv.Atoi(string(data[pendingAttempt]))
	return p
}

// Data is what a secret holds of it.
func (p Pending) Data() map[string][]byte {
	d := map[string][]byte{pendingAttempt: []byte(strconv.Itoa(p.Attempt))}
	if p.Request != "" {
		d[pendingRequest], d[clusterv1.SecretKeyTLSKey] = []byte(p.Request), p.Key
	}
	if !p.RetryAfter.IsZero() {
		d[pendingRetry] = []byte(p.RetryAfter.UTC().Format(time.RFC3339))
	}
	if p.Reason != "" {
		d[pendingReason] = []byte(p.Reason)
	}
	return d
}

// Begin is a request that does not exist yet, with a new key and a name that
// begins with prefix. Attempt and reason tell of those that were denied before.
func Begin(prefix string, attempt int, reason string) (Pending, error) {
	key, err := NewKey()
	if err != nil {
		return Pending{}, err
	}
	return Pending{Request: newName(prefix), Key: key, Attempt: attempt, Reason: reason}, nil
}

// Postponed is what is noted of a denial. The key is forgotten: nobody will sign
// it.
func Postponed(now time.Time, attempt int, reason string) Pending {
	return Pending{Attempt: attempt, Reason: reason, RetryAfter: now.Add(retryDelay(attempt))}
}

// Asked is the request that a process created last.
type Asked struct {
	// Name is that of the request, At when the hub had taken it.
	Name string
	At   time.Time
}

// When is when the process created the request of that name; zero when it did
// not.
func (a Asked) When(name string) time.Time {
	if a.Name != name {
		return time.Time{}
	}
	return a.At
}
