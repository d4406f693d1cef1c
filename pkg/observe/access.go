// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// How long a decision is remembered, and how many: enough for a few scrapers,
// short enough that a right that is taken away ends soon.
const (
	rememberFor = 10 * time.Second
	rememberMax = 256
)

var (
	tokenReviews         = schema.GroupVersionResource{Group: "authentication.k8s.io", Version: "v1", Resource: "tokenreviews"}
	subjectAccessReviews = schema.GroupVersionResource{Group: "authorization.k8s.io", Version: "v1", Resource: "subjectaccessreviews"}
)

// Reviews is the Access that asks the process's own cluster. Its methods are
// safe for concurrent use. Tokens are neither kept nor logged, only their
// SHA-256 sums are kept.
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

// NewReviews makes an Access that needs the rights to create tokenreviews and
// subjectaccessreviews.
func NewReviews(client dynamic.Interface, clk clock.PassiveClock) *Reviews {
	return &Reviews{client: client, clock: clk, known: map[question]verdict{}}
}

// Allowed implements Access. Failures of the API are not remembered.
func (r *Reviews) Allowed(ctx context.Context, token, path string) error {
	q := question{sha256.Sum256([]byte(token)), path}
	if v, ok := r.recall(q); ok {
		return v.err
	}
	err, final := r.review(ctx, token, path)
	if final {
		r.remember(q, err)
	}
	return err
}

func (r *Reviews) recall(q question) (verdict, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	v, ok := r.known[q]
	return v, ok && r.clock.Now().Before(v.until)
}

func (r *Reviews) remember(q question, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.known) >= rememberMax {
		clear(r.known)
	}
	r.known[q] = verdict{err, r.clock.Now().Add(rememberFor)}
}

// review asks the cluster; final is false when it could not answer.
func (r *Reviews) review(ctx context.Context, token, path string) (err error, final bool) {
	who := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	who.SetGroupVersionKind(authenticationv1.SchemeGroupVersion.WithKind("TokenReview"))
	who, err = ask(ctx, r.client, tokenReviews, who)
	if err != nil {
		return fmt.Errorf("reviewing a token: %w", err), false
	}
	if !who.Status.Authenticated {
		return ErrUnauthorized, true
	}
	user := who.Status.User
	may := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups,
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: path, Verb: "get"},
	}}
	for key, values := range user.Extra {
		if may.Spec.Extra == nil {
			may.Spec.Extra = map[string]authorizationv1.ExtraValue{}
		}
		may.Spec.Extra[key] = authorizationv1.ExtraValue(values)
	}
	may.SetGroupVersionKind(authorizationv1.SchemeGroupVersion.WithKind("SubjectAccessReview"))
	may, err = ask(ctx, r.client, subjectAccessReviews, may)
	if err != nil {
		return fmt.Errorf("reviewing access of %s: %w", user.Username, err), false
	}
	if !may.Status.Allowed {
		return ErrForbidden, true
	}
	return nil, true
}

// ask creates a review and returns the answer.
func ask[T any, P interface {
	*T
	runtime.Object
}](ctx context.Context, client dynamic.Interface, resource schema.GroupVersionResource, review P) (P, error) {
	u, err := typed.ToUnstructured(review)
	if err != nil {
		return nil, err
	}
	answer, err := client.Resource(resource).Create(ctx, u, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	return typed.FromUnstructured[T](answer)
}
