// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	config "github.com/kubectl-ocm/kubectl-ocm/config/agent"
	"github.com/kubectl-ocm/kubectl-ocm/config/crd"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/teardown"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness/faults"
)

var appliedWorks = schema.GroupVersionResource{Group: "work.open-cluster-management.io", Version: "v1", Resource: "appliedmanifestworks"}

// leftovers lists what an agent left on its cluster.
func (s *spoke) leftovers(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, gvr := range []schema.GroupVersionResource{
		namespaces, definitions,
		{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"},
	} {
		list, err := s.client.Resource(gvr).List(t.Context(), metav1.ListOptions{LabelSelector: operatorv1.LabelCreatedByKlusterlet})
		require.NoError(t, err)
		for _, u := range list.Items {
			out = append(out, gvr.Resource+" "+u.GetName())
		}
	}
	return out
}

func (s *spoke) awaitGone(t *testing.T) {
	t.Helper()
	var left []string
	defer func() {
		if len(left) > 0 {
			t.Logf("left: %v", left)
		}
	}()
	await(t, func() bool { left = s.leftovers(t); return len(left) == 0 })
}

// appliedWork creates an AppliedManifestWork of the agent with this ID.
func (s *spoke) appliedWork(t *testing.T, name, agentID string) {
	t.Helper()
	await(t, func() bool {
		_, err := s.client.Resource(appliedWorks).List(t.Context(), metav1.ListOptions{})
		return err == nil
	})
	apply(t, s.client, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "work.open-cluster-management.io/v1", "kind": "AppliedManifestWork",
		"metadata": map[string]any{
			"name":       name,
			"finalizers": []any{"cluster.open-cluster-management.io/applied-manifest-work-cleanup"},
		},
		"spec": map[string]any{"hubHash": "h", "manifestWorkName": name, "agentID": agentID}}})
}

func TestDeletedKlusterletLeavesNothing(t *testing.T) {
	t.Parallel()
	h, s := newHub(t), newSpoke(t)
	s.install(t, config.Options{ClusterName: "deleted", BootstrapKubeconfig: h.bootstrap(t)})
	s.start(t)
	h.join(t, "deleted")
	started := time.Now()
	require.NoError(t, s.client.Resource(klusterlets).Delete(t.Context(), "klusterlet", metav1.DeleteOptions{}))
	s.awaitGone(t)
	t.Logf("deleted to nothing left %s", time.Since(started).Round(time.Millisecond))
}

func TestWorksStayWhenTheAgentGoes(t *testing.T) {
	t.Parallel()
	h, s := newHub(t), newSpoke(t)
	s.install(t, config.Options{ClusterName: "stays", BootstrapKubeconfig: h.bootstrap(t)})
	s.start(t)
	s.awaitKlusterlet(t, "Applied", "KlusterletApplied", "")
	s.appliedWork(t, "mine", string(s.klusterlet(t).UID))
	s.appliedWork(t, "foreign", "another")
	require.NoError(t, s.client.Resource(klusterlets).Delete(t.Context(), "klusterlet", metav1.DeleteOptions{}))
	s.awaitGone(t)
	for name, kept := range map[string]int{"mine": 0, "foreign": 1} {
		u, err := s.client.Resource(appliedWorks).Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err)
		require.Nil(t, u.GetDeletionTimestamp())
		require.Len(t, u.GetFinalizers(), kept, name)
	}
}

func TestDeadAgentIsRemovedFromOutside(t *testing.T) {
	t.Parallel()
	h, s := newHub(t), newSpoke(t)
	s.install(t, config.Options{ClusterName: "dead", BootstrapKubeconfig: h.bootstrap(t)})
	a := s.start(t)
	h.join(t, "dead")
	a.kill()
	var told []string
	require.NoError(t, teardown.Agent(t.Context(), s.client, teardown.AgentOptions{
		Patience: time.Second, Progress: func(line string) { told = append(told, line) }}))
	require.Empty(t, s.leftovers(t))
	require.Contains(t, told, "the agent does not answer: removing it from outside")
	require.NoError(t, teardown.Agent(t.Context(), s.client, teardown.AgentOptions{}), "a second time changes nothing")
}

// mortal returns a client of a process that dies with its n-th write, and the process.
func mortal(t *testing.T, cfg *rest.Config, writes int) (dynamic.Interface, *faults.Process) {
	t.Helper()
	cfg, process := faults.StopAfter(cfg, writes)
	cfg.QPS = -1
	client, err := dynamic.NewForConfig(cfg)
	require.NoError(t, err)
	return client, process
}

// prepareRemoval installs an agent in its state before its Klusterlet is removed.
func (s *spoke) prepareRemoval(t *testing.T) {
	t.Helper()
	s.install(t, config.Options{ClusterName: "c1", BootstrapKubeconfig: []byte("k")})
	agentCRDs, err := crd.Agent()
	require.NoError(t, err)
	for _, u := range agentCRDs {
		u.SetLabels(map[string]string{operatorv1.LabelCreatedByKlusterlet: "klusterlet"})
		apply(t, s.client, u)
	}
	k := s.klusterlet(t)
	k.Finalizers = []string{operatorv1.FinalizerKlusterlet}
	_, err = s.client.Resource(klusterlets).Update(t.Context(), object(t, k), metav1.UpdateOptions{})
	require.NoError(t, err)
}

func TestRemovalFromOutsideSurvivesAKillAfterEachWrite(t *testing.T) {
	t.Parallel()
	s := newSpoke(t)
	for writes := 0; ; writes++ {
		s.prepareRemoval(t)
		client, _ := mortal(t, s.Config, writes)
		err := teardown.Agent(t.Context(), client, teardown.AgentOptions{})
		if err == nil {
			require.Empty(t, s.leftovers(t))
			t.Logf("%d writes", writes-1)
			return
		}
		require.ErrorIs(t, err, faults.ErrStopped, "after %d writes", writes)
		require.NoError(t, teardown.Agent(t.Context(), s.client, teardown.AgentOptions{}), "after %d writes", writes)
		require.Empty(t, s.leftovers(t))
	}
}

func TestRemovalByTheAgentSurvivesAKillAfterEachWrite(t *testing.T) {
	t.Parallel()
	s := newSpoke(t)
	for writes := 0; ; writes++ {
		s.prepareRemoval(t)
		require.NoError(t, s.client.Resource(klusterlets).Delete(t.Context(), "klusterlet", metav1.DeleteOptions{}))
		k := s.klusterlet(t)
		// The agent has only its own rights.
		cfg := s.As(t, operatorv1.NamespaceAgent, config.ServiceAccount("klusterlet"))
		client, _ := mortal(t, cfg, writes)
		err := teardown.AgentItself(t.Context(), client, k, operatorv1.NamespaceAgent)
		if err == nil {
			s.awaitGone(t)
			t.Logf("%d writes", writes-1)
			return
		}
		require.ErrorIs(t, err, faults.ErrStopped, "after %d writes", writes)
		again, err := dynamic.NewForConfig(cfg)
		require.NoError(t, err)
		// Its rights go with its namespace, perhaps before it runs again: then nothing is left for it to do.
		if err := teardown.AgentItself(t.Context(), again, k, operatorv1.NamespaceAgent); !apierrors.IsForbidden(err) {
			require.NoError(t, err, "after %d writes", writes)
		}
		s.awaitGone(t)
		_, err = s.client.Resource(klusterlets).Get(t.Context(), "klusterlet", metav1.GetOptions{})
		require.True(t, apierrors.IsNotFound(err))
	}
}
