// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"crypto/sha256"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/internal/review"
)

// How long a decision is cached, and how many: enough for a few scrapers, and short
// enough that a revoked right ends soon.
const (
	rememberFor = 10 * time.Second
	rememberMax = 256
)

// Reviews is the Access that asks the process's own cluster. It is safe for concurrent
// use. Tokens are neither kept nor logged; only their SHA-256 sums are kept.
type Reviews struct {
	client dynamic.Interface
	clock  clock.PassiveClock

	mu    sync.Mutex
	known map[question]verdict
}

type question struct {
	token [sha256.Size]byte
	path  string
}

type verdict struct {
	err   error
	until time.Time
}

var _ Access = (*Reviews)(nil)

// NewReviews returns an Access that needs the rights to create tokenreviews and
// subjectaccessreviews.
func NewReviews(client dynamic.Interface, clk clock.PassiveClock) *Reviews {
	return &Reviews{client: client, clock: clk, known: map[question]verdict{}}
}

// Allowed implements Access. Failures of the API are not cached.
func (r *Reviews) Allowed(ctx context.Context, token, path string) error {
	q := question{sha256.Sum256([]byte(token)), path}
	r.mu.Lock()
	v, ok := r.known[q]
	r.mu.Unlock()
	if ok && r.clock.Now().Before(v.until) {
		return v.err
	}
	err, final := r.review(ctx, token, path)
	if !final {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.known) >= rememberMax {
		clear(r.known)
	}
	r.known[q] = verdict{err, r.clock.Now().Add(rememberFor)}
	return err
}

// review asks the cluster; final is false if it could not answer.
func (r *Reviews) review(ctx context.Context, token, path string) (err error, final bool) {
	user, ok, err := review.Bearer(ctx, r.client, token)
	switch {
	case err != nil:
		return err, false
	case !ok:
		return ErrUnauthorized, true
	}
	allowed, _, err := review.Access(ctx, r.client, &user, review.Right{Path: &authorizationv1.NonResourceAttributes{Path: path, Verb: "get"}})
	switch {
	case err != nil:
		return err, false
	case !allowed:
		return ErrForbidden, true
	}
	return nil, true
}
