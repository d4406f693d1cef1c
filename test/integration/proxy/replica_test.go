// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	proxyhub "github.com/kubectl-ocm/kubectl-ocm/controllers/proxy/hub"
	connectv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/connect/v1alpha1"
)

// replica is one of several processes of a hub.
type replica struct {
	leads    atomic.Bool
	leader   atomic.Pointer[string]
	registry *proxyhub.Registry
	port     int
}

func (s *scene) replica(t *testing.T) *replica {
	t.Helper()
	r := &replica{}
	r.follow("")
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	r.registry, r.port = s.serve(ctx, t, proxyhub.Options{Leads: r.leads.Load, Leader: func() string { return *r.leader.Load() }})
	return r
}

func (r *replica) follow(leader string) { r.leader.Store(&leader) }

func (r *replica) address() string { return fmt.Sprintf("127.0.0.1:%d", r.port) }

// TestOneReplicaOfTheHubHoldsAllTunnels: the others hand on what the API server sends them. Before one
// of them leads, the API is served, and requests are told to come again.
func TestOneReplicaOfTheHubHoldsAllTunnels(t *testing.T) {
	s := start(t)
	s.join(t, "replicated")
	first, second := s.replica(t), s.replica(t)
	t.Cleanup(func() { s.register(t, s.port) })
	s.register(t, second.port)
	root := s.personConfig(t, "root", "system:masters")
	awaitTold := func() {
		t.Helper()
		soon(t, func() error {
			answer := raw(t, root, http.MethodGet, connectv1alpha1.ServerPath("replicated")+"/api", nil)
			if cause := answer.Header.Get(connectv1alpha1.HeaderError); cause != connectv1alpha1.CauseNoLeader {
				return fmt.Errorf("%d %s", answer.StatusCode, cause)
			}
			require.Equal(t, http.StatusServiceUnavailable, answer.StatusCode)
			require.Equal(t, "2", answer.Header.Get("Retry-After"))
			return nil
		})
		_, err := s.person(t, "root", "system:masters").Discovery().ServerResourcesForGroupVersion(connectv1alpha1.GroupVersion.String())
		require.NoError(t, err)
	}
	awaitTold()
	second.follow("127.0.0.1:1")
	awaitTold()

	first.leads.Store(true)
	second.follow(first.address())
	stop := s.run(t, "replicated", s.asAgent)
	defer stop()
	held := func(by, not *replica) {
		t.Helper()
		soon(t, func() error {
			_, err := s.on(t, "replicated", "root", "system:masters").CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
			return onlyForbidden(err)
		})
		require.Equal(t, 1, by.registry.Len())
		require.Zero(t, not.registry.Len())
	}
	held(first, second)

	first.leads.Store(false)
	first.follow(second.address())
	second.leads.Store(true)
	first.registry.Resign()
	held(second, first)
}
