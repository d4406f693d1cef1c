// SPDX-License-Identifier: Apache-2.0

package observe_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubectl-ocm/kubectl-ocm/internal/observe"
)

// reviewer is the part of an API server that answers reviews.
type reviewer struct {
	reviews atomic.Int32
	last    atomic.Pointer[authorizationv1.SubjectAccessReviewSpec]
}

func (v *reviewer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch r.URL.Path {
	case "/apis/authentication.k8s.io/v1/tokenreviews":
		v.reviews.Add(1)
		var review authenticationv1.TokenReview
		_ = json.NewDecoder(r.Body).Decode(&review)
		review.Status.Authenticated = review.Spec.Token != "unknown"
		review.Status.User = authenticationv1.UserInfo{
			Username: review.Spec.Token, UID: "u1", Groups: []string{"g"},
			Extra: map[string]authenticationv1.ExtraValue{"scope": {"metrics"}},
		}
		_ = json.NewEncoder(w).Encode(review)
	case "/apis/authorization.k8s.io/v1/subjectaccessreviews":
		var review authorizationv1.SubjectAccessReview
		_ = json.NewDecoder(r.Body).Decode(&review)
		v.last.Store(&review.Spec)
		review.Status.Allowed = review.Spec.User == "scraper"
		_ = json.NewEncoder(w).Encode(review)
	default:
		http.Error(w, "no such path", http.StatusNotFound)
	}
}

func TestReviewsPassTheWholeIdentityAndRememberForSeconds(t *testing.T) {
	api := &reviewer{}
	server := httptest.NewServer(api)
	defer server.Close()
	config := &rest.Config{Host: server.URL}
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	defer http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	clk := clocktesting.NewFakePassiveClock(time.Unix(1_700_000_000, 0))
	reviews := observe.NewReviews(client, clk)
	ctx := context.Background()

	require.ErrorIs(t, reviews.Allowed(ctx, "unknown", "/metrics"), observe.ErrUnauthorized)
	require.ErrorIs(t, reviews.Allowed(ctx, "visitor", "/metrics"), observe.ErrForbidden)
	require.NoError(t, reviews.Allowed(ctx, "scraper", "/metrics"))
	asked := api.last.Load()
	require.Equal(t, "u1", asked.UID)
	require.Equal(t, []string{"g"}, asked.Groups)
	require.Equal(t, authorizationv1.ExtraValue{"metrics"}, asked.Extra["scope"])
	require.Equal(t, "/metrics", asked.NonResourceAttributes.Path)

	before := api.reviews.Load()
	require.NoError(t, reviews.Allowed(ctx, "scraper", "/metrics"))
	require.Equal(t, before, api.reviews.Load(), "the second answer is remembered")
	clk.SetTime(clk.Now().Add(11 * time.Second))
	require.NoError(t, reviews.Allowed(ctx, "scraper", "/metrics"))
	require.Equal(t, before+1, api.reviews.Load(), "a remembered answer ends")

	server.Close()
	err = reviews.Allowed(ctx, "another", "/metrics")
	require.Error(t, err)
	require.NotErrorIs(t, err, observe.ErrUnauthorized)
}
