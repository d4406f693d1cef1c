// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	config "github.com/kubectl-ocm/kubectl-ocm/config/agent"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
)

var events = schema.GroupVersionResource{Group: "events.k8s.io", Version: "v1", Resource: "events"}

func TestDeniedRequestIsReportedAndAskedAgain(t *testing.T) {
	t.Parallel()
	h, s := newHub(t), newSpoke(t)
	s.install(t, config.Options{ClusterName: "denied", BootstrapKubeconfig: h.bootstrap(t)})
	a := s.start(t)
	first := h.awaitRequest(t, "denied").GetName()
	decided := time.Now()
	h.decide(t, first, "Denied", "another cluster is named so")

	s.awaitKlusterlet(t, "HubConnectionDegraded", "BootstrapSecretFunctional,HubKubeConfigSecretMissing", "another cluster is named so; attempt 2 follows at")
	await(t, func() bool {
		list, err := s.client.Resource(events).Namespace("default").List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		for _, e := range list.Items {
			if e.Object["reason"] == "CertificateRequestDenied" {
				return true
			}
		}
		return false
	})

	// The waiting time survives a restart, and no request is sent before it is over.
	pending := s.secret(t.Context(), "hub-kubeconfig-pending")
	require.Equal(t, "1", string(pending["attempt"]))
	require.Contains(t, string(pending["reason"]), "another cluster is named so")
	require.NotContains(t, pending, "tls.key")
	until, err := time.Parse(time.RFC3339, string(pending["retry-after"]))
	require.NoError(t, err)
	// It is stored in whole seconds: the fraction is cut off.
	require.False(t, until.Before(decided.Add(29*time.Second)), "%s is not half a minute after %s", until, decided)
	require.False(t, until.After(time.Now().Add(30*time.Second)), "%s is more than half a minute from now", until)
	a.kill()
	s.start(t)

	// Once it is over, the agent sends a request with another key, and can join.
	second := h.awaitRequest(t, "denied", first)
	require.GreaterOrEqual(t, second.GetCreationTimestamp().Unix(), until.Unix())
	h.accept(t, "denied")
	h.approve(t, second.GetName())
	h.awaitCondition(t, "denied", clusterv1.ConditionAvailable, metav1.ConditionTrue)
	require.Len(t, h.requestsOf(t, "denied"), 2)
}

func TestNewBootstrapDataAsksAgainAtOnce(t *testing.T) {
	h, s := newHub(t), newSpoke(t)
	s.install(t, config.Options{ClusterName: "again", BootstrapKubeconfig: h.bootstrap(t)})
	s.start(t)
	first := h.awaitRequest(t, "again").GetName()
	h.decide(t, first, "Denied", "not today")
	await(t, func() bool { return s.secret(t.Context(), "hub-kubeconfig-pending")["retry-after"] != nil })
	// It has been denied so often that the next attempt is nearly an hour away.
	later, err := json.Marshal(map[string]any{"data": map[string][]byte{
		"attempt": []byte("8"), "retry-after": []byte(time.Now().Add(50 * time.Minute).UTC().Format(time.RFC3339))}})
	require.NoError(t, err)
	_, err = s.client.Resource(secrets).Namespace(operatorv1.NamespaceAgent).Patch(
		t.Context(), "hub-kubeconfig-pending", types.MergePatchType, later, metav1.PatchOptions{},
	)
	require.NoError(t, err)
	s.awaitKlusterlet(t, "HubConnectionDegraded", "BootstrapSecretFunctional,HubKubeConfigSecretMissing", "attempt 9 follows at")
	s.setBootstrap(t, h.bootstrap(t))
	h.awaitRequest(t, "again", first)
}

func (h *hub) requestTime(t *testing.T, name string) int64 {
	t.Helper()
	u, err := h.client.Resource(requests).Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	return u.GetCreationTimestamp().Unix()
}

func TestRequestThatIsRemovedAtOnceIsNotMadeWithoutEnd(t *testing.T) {
	t.Parallel()
	h, s := newHub(t), newSpoke(t)
	s.install(t, config.Options{ClusterName: "swept", BootstrapKubeconfig: h.bootstrap(t)})
	s.start(t)
	made := map[types.UID]bool{}
	sweep := func() bool {
		for _, u := range h.requestsOf(t, "swept") {
			made[u.GetUID()] = true
			err := h.client.Resource(requests).Delete(t.Context(), u.GetName(), metav1.DeleteOptions{})
			require.True(t, err == nil || apierrors.IsNotFound(err), err)
		}
		return len(made) > 0
	}
	await(t, sweep)
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); <-ticker.C {
		sweep()
	}
	require.LessOrEqual(t, len(made), 2)
}
