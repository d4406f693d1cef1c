// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	config "github.com/kubectl-ocm/kubectl-ocm/config/agent"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

var events = schema.GroupVersionResource{Group: "events.k8s.io", Version: "v1", Resource: "events"}

func TestDeniedRequestIsReportedAndAskedAgain(t *testing.T) {
	t.Parallel()
	h, s := newHub(t), newSpoke(t)
	s.install(t, config.Options{ClusterName: "denied", BootstrapKubeconfig: h.bootstrap(t)})
	a := s.start(t)
	first := h.awaitRequest(t, "denied").GetName()
	h.decide(t, first, "Denied", "another cluster is named so")

	s.awaitKlusterlet(t, "HubConnectionDegraded", "BootstrapSecretFunctional,HubKubeConfigSecretMissing", "another cluster is named so")
	require.Eventually(t, func() bool {
		list, err := s.client.Resource(events).Namespace("default").List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		for _, e := range list.Items {
			if e.Object["reason"] == "CertificateRequestDenied" {
				return true
			}
		}
		return false
	}, wait, 20*time.Millisecond)

	// The time to wait survives a restart, and no request is made before.
	pending := s.secret(t.Context(), "hub-kubeconfig-pending")
	require.Equal(t, "1", string(pending["attempt"]))
	require.Contains(t, string(pending["reason"]), "another cluster is named so")
	require.NotContains(t, pending, "tls.key")
	until, err := time.Parse(time.RFC3339, string(pending["retry-after"]))
	require.NoError(t, err)
	require.WithinDuration(t, time.Now().Add(30*time.Second), until, 15*time.Second)
	a.kill()
	s.start(t)
	s.awaitKlusterlet(t, "HubConnectionDegraded", "BootstrapSecretFunctional,HubKubeConfigSecretMissing", "attempt 2 follows at")
	require.Len(t, h.requestsOf(t, "denied"), 1)

	// When it has passed the agent asks with another key, and can join.
	second := h.awaitRequest(t, "denied", first)
	require.GreaterOrEqual(t, second.GetCreationTimestamp().Unix(), until.Unix())
	h.accept(t, "denied")
	h.approve(t, second.GetName())
	h.awaitCondition(t, "denied", clusterv1.ConditionAvailable, metav1.ConditionTrue)
}

func TestNewBootstrapDataAsksAgainAtOnce(t *testing.T) {
	h, s := newHub(t), newSpoke(t)
	s.install(t, config.Options{ClusterName: "again", BootstrapKubeconfig: h.bootstrap(t)})
	s.start(t)
	first := h.awaitRequest(t, "again").GetName()
	h.decide(t, first, "Denied", "not today")
	require.Eventually(t, func() bool { return s.secret(t.Context(), "hub-kubeconfig-pending")["retry-after"] != nil }, wait, 10*time.Millisecond)
	s.setBootstrap(t, h.bootstrap(t))
	second := h.awaitRequest(t, "again", first)
	require.Less(t, second.GetCreationTimestamp().Unix()-h.requestTime(t, first), int64(25))
}

func (h *hub) requestTime(t *testing.T, name string) int64 {
	t.Helper()
	u, err := h.client.Resource(requests).Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	return u.GetCreationTimestamp().Unix()
}
