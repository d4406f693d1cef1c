// SPDX-License-Identifier: Apache-2.0

package request

import (
	"strconv"
	"time"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

// Keys of a secret that holds a pending request, beside tls.key and tls.crt. They are private to this
// agent; no other program reads them.
const (
	pendingRequest = "csr-name"
	pendingAttempt = "attempt"
	pendingRetry   = "retry-after"
	pendingReason  = "reason"
)

// Pending is a certificate request in progress, or the time at which the next one may be
// made.
type Pending struct {
	// Request is the name of the request; empty while waiting for RetryAfter.
	Request string
	// Key is the private key as PEM.
	Key []byte
	// Certificate is the certificate issued for it, as PEM, if it must be kept here.
	Certificate []byte
	// Attempt counts consecutive denials.
	Attempt int
	// RetryAfter is when a denied request may be repeated; zero otherwise. Reason is the
	// hub's reason.
	RetryAfter time.Time
	Reason     string
}

// ReadPending parses what Data wrote. Unreadable content counts as absent; a new request is
// started.
func ReadPending(data map[string][]byte) Pending {
	p := Pending{
		Request: string(data[pendingRequest]), Reason: string(data[pendingReason]),
		Key: data[clusterv1.SecretKeyTLSKey], Certificate: data[clusterv1.SecretKeyTLSCert],
	}
	p.RetryAfter, _ = time.Parse(time.RFC3339, string(data[pendingRetry]))
	p.Attempt, _ = strconv.Atoi(string(data[pendingAttempt]))
	return p
}

// Data returns the content of the secret.
func (p Pending) Data() map[string][]byte {
	d := map[string][]byte{pendingAttempt: []byte(strconv.Itoa(p.Attempt))}
	if p.Request != "" {
		d[pendingRequest], d[clusterv1.SecretKeyTLSKey] = []byte(p.Request), p.Key
	}
	if len(p.Certificate) > 0 {
		d[clusterv1.SecretKeyTLSCert] = p.Certificate
	}
	if !p.RetryAfter.IsZero() {
		d[pendingRetry] = []byte(Stamp(p.RetryAfter))
	}
	if p.Reason != "" {
		d[pendingReason] = []byte(p.Reason)
	}
	return d
}

// Asked is the request a process created last.
type Asked struct {
	// Name is the name of the request, At when the hub accepted it.
	Name string
	At   time.Time
}

// When returns when the process created the request of that name; zero if it did not.
func (a Asked) When(name string) time.Time {
	if a.Name != name {
		return time.Time{}
	}
	return a.At
}
