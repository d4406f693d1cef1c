// SPDX-License-Identifier: Apache-2.0

package request

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-ocm/kubectl-ocm/internal/excerpt"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
)

const (
	// firstRetry and lastRetry bound the delay before a denied request is repeated.
	firstRetry, lastRetry = 30 * time.Second, time.Hour
	// renewFrom and renewSpread are the part of a certificate's lifetime after which it is
	// renewed: 75 to 80 %.
	renewFrom, renewSpread = 0.75, 0.05
	// firstBehind and lastBehind bound the delay before repeating a pass whose cache was
	// behind.
	firstBehind, lastBehind = 20 * time.Millisecond, 10 * time.Second
	// maxMessage is how much of a reason is kept, in bytes: hubs do not limit it.
	maxMessage = 1024
)

// Answer is the hub's view of a pending request.
type Answer struct {
	// Known is false until the hub has answered. Problem is why the hub does not answer now;
	// empty when it does.
	Known   bool
	Problem string
	// Found reports whether the request exists.
	Found bool
	// Approved is true when the request was approved.
	Approved bool
	// Denied is true when it was denied or could not be signed; Message is the reason.
	Denied  bool
	Message string
	// Certificate is the issued certificate, as PEM.
	Certificate []byte
}

// readAnswer extracts what a watch keeps of a request.
func readAnswer(u *unstructured.Unstructured) (Answer, bool) {
	r := Answer{Known: true, Found: true}
	if encoded, _, _ := unstructured.NestedString(u.Object, "status", "certificate"); encoded != "" {
		r.Certificate, _ = base64.StdEncoding.DecodeString(encoded)
	}
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, item := range conditions {
		c, _ := item.(map[string]any)
		switch c["type"] {
		case "Approved":
			r.Approved = true
		case "Denied", "Failed":
			reason, _ := c["reason"].(string)
			message, _ := c["message"].(string)
			r.Denied, r.Message = true, excerpt.Of(strings.TrimSpace(reason+": "+message), maxMessage)
		}
	}
	return r, true
}

// Watcher watches the one pending request.
type Watcher struct{ one *watch.One[Answer] }

// NewWatcher makes a Watcher that calls onChange when the request is answered.
func NewWatcher(onChange func(), log logr.Logger) *Watcher {
	return &Watcher{watch.NewOne(watch.OneOptions[Answer]{Resource: resource, Keep: readAnswer, OnChange: onChange, Log: log})}
}

// Look returns what is known of the request and starts watching it, if it is not watched yet,
// until ctx ends. An empty name ends the watch.
func (w *Watcher) Look(ctx context.Context, client dynamic.Interface, name string) Answer {
	s := w.one.Look(ctx, client, reconcile.Key{Name: name})
	a := Answer{Known: s.Known}
	if s.Found {
		a = s.Item
	}
	if s.Err != nil {
		a.Problem = "reading the certificate request: " + s.Err.Error()
	}
	return a
}

// Close ends the watch; a later Look starts it again.
func (w *Watcher) Close() { w.one.Close() }

// RenewAt returns when to renew a certificate that, with its chain, is valid until expires.
// The moment between 75 and 80 % of its lifetime is derived from its serial number, so that
// agents spread out and a restart changes nothing.
func RenewAt(leaf *x509.Certificate, expires time.Time) time.Time {
	last := 0.0
	if raw := leaf.SerialNumber.Bytes(); len(raw) > 0 {
		last = float64(raw[len(raw)-1]) / 255
	}
	life := expires.Sub(leaf.NotBefore)
	return leaf.NotBefore.Add(time.Duration(float64(life) * (renewFrom + renewSpread*last)))
}

// retryDelay is the delay before the next attempt after the given number of denials: 30 s,
// doubling, at most an hour.
func retryDelay(attempt int) time.Duration { return doubled(firstRetry, lastRetry, attempt) }

// Behind is the delay before repeating a pass after the given number of consecutive failures
// because of a stale cache: 20 ms, doubling, at most ten seconds.
func Behind(times int) time.Duration { return doubled(firstBehind, lastBehind, times) }

func doubled(first, last time.Duration, times int) time.Duration {
	return min(first<<min(max(times-1, 0), 16), last)
}
