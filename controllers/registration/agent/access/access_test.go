// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// TestASlowHubIsAskedForAllRightsAtOnce: no right is answered before all of them are asked for.
func TestASlowHubIsAskedForAllRightsAtOnce(t *testing.T) {
	rights := Hub("c1")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var asked atomic.Int64
	all := make(chan struct{})
	client := hubThat(t, func(authorizationv1.ResourceAttributes) (int, bool) {
		if asked.Add(1) == int64(len(rights)) {
			close(all)
		}
		select {
		case <-all:
		case <-ctx.Done():
		}
		return http.StatusCreated, true
	})
	require.Equal(t, Answer{}, Ask(ctx, client, rights))
}

func TestWhatAHubAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(authorizationv1.ResourceAttributes) (int, bool)
		want   Answer
	}{
		"all": {
			func(authorizationv1.ResourceAttributes) (int, bool) { return http.StatusCreated, true },
			Answer{},
		},
		"some, named in the order in which they are listed": {
			func(a authorizationv1.ResourceAttributes) (int, bool) {
				return http.StatusCreated, a.Verb != "create"
			},
			Answer{Refused: true, Missing: []string{
				"create managedclusters.cluster.open-cluster-management.io",
				"create certificatesigningrequests.certificates.k8s.io",
			}},
		},
		"it does not know the credential, whatever it says else": {
			func(a authorizationv1.ResourceAttributes) (int, bool) {
				if a.Resource == "certificatesigningrequests" {
					return http.StatusUnauthorized, false
				}
				return http.StatusCreated, false
			},
			Answer{Refused: true, Missing: []string{"the hub does not know the credential"}},
		},
		"it fails for one: nothing is refused": {
			func(a authorizationv1.ResourceAttributes) (int, bool) {
				if a.Resource == "certificatesigningrequests" {
					return http.StatusInternalServerError, false
				}
				return http.StatusCreated, false
			},
			Answer{Problem: "asking the hub for rights: broken"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, Ask(t.Context(), hubThat(t, c.answer), Bootstrap()))
		})
	}
}

// hubThat returns a client of a server that answers reviews.
func hubThat(t *testing.T, answer func(authorizationv1.ResourceAttributes) (code int, allowed bool)) dynamic.Interface {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review authorizationv1.SelfSubjectAccessReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		code, allowed := answer(*review.Spec.ResourceAttributes)
		var body any = metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: int32(code), Message: "broken",
		}
		if code == http.StatusUnauthorized {
			body = metav1.Status{
				TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: int32(code),
				Reason: metav1.StatusReasonUnauthorized,
			}
		}
		if code == http.StatusCreated {
			review.TypeMeta = metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SelfSubjectAccessReview"}
			review.Status.Allowed = allowed
			body = review
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(body)
	}))
	t.Cleanup(server.Close)
	client, err := dynamic.NewForConfig(&rest.Config{Host: server.URL, QPS: -1})
	require.NoError(t, err)
	return client
}
