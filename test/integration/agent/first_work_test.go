// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"bytes"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	config "github.com/kubectl-ocm/kubectl-ocm/config/agent"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// work creates a work that makes a ConfigMap of the same name.
func (h *hub) work(t *testing.T, cluster, name string) {
	t.Helper()
	_, err := h.client.Resource(works).Namespace(cluster).Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": works.GroupVersion().String(), "kind": "ManifestWork", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"workload": map[string]any{"manifests": []any{map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "default", "name": name}, "data": map[string]any{"k": "v"}}}}}}},
		metav1.CreateOptions{})
	require.NoError(t, err)
}

// applied waits until the ConfigMap is there and tells when that was.
func (s *spoke) applied(t *testing.T, name string) time.Time {
	t.Helper()
	require.Eventually(t, func() bool {
		_, err := s.client.Resource(configMaps).Namespace("default").Get(t.Context(), name, metav1.GetOptions{})
		return err == nil
	}, wait, 5*time.Millisecond)
	return time.Now()
}

// logged waits until the agent's log holds all the texts in one line.
func (a *agent) logged(t *testing.T, texts ...string) {
	t.Helper()
	require.Eventually(t, func() bool {
		raw, err := os.ReadFile(a.log)
		require.NoError(t, err)
		for line := range bytes.Lines(raw) {
			all := true
			for _, text := range texts {
				all = all && bytes.Contains(line, []byte(text))
			}
			if all {
				return true
			}
		}
		return false
	}, wait, 2*time.Millisecond)
}

// seasoned waits until the definition of AppliedManifestWorks is some seconds
// old. A kube-apiserver holds every POST for two seconds that comes within two
// seconds after a definition was established.
func (s *spoke) seasoned(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool {
		u, err := s.client.Resource(definitions).Get(t.Context(), "appliedmanifestworks.work.open-cluster-management.io", metav1.GetOptions{})
		require.NoError(t, err)
		return time.Since(u.GetCreationTimestamp().Time) > 4*time.Second
	}, wait, tick)
}

// A reflector that is refused once waits for 0.8 to 1.6 seconds. That a work is
// there within 0.5 seconds shows that none did.
const soon = 500 * time.Millisecond

func TestFirstWorkOfAClusterIsAppliedAsSoonAsItIsAccepted(t *testing.T) {
	h, s := newHub(t), newSpoke(t)
	s.install(t, config.Options{ClusterName: "first", BootstrapKubeconfig: h.bootstrap(t)})
	s.start(t)
	request := h.awaitRequest(t, "first")
	s.seasoned(t)
	h.approve(t, request.GetName())
	require.Eventually(t, func() bool { return s.secret(t.Context(), "hub-kubeconfig-secret") != nil }, wait, 5*time.Millisecond)
	h.accept(t, "first")
	h.work(t, "first", "first-work")
	created := time.Now()
	took := s.applied(t, "first-work").Sub(created)
	t.Logf("accepted and created to applied: %s", took.Round(time.Millisecond))
	require.Less(t, took, soon)
}

func TestRightThatComesAfterTheAcceptanceIsUsedAtOnce(t *testing.T) {
	h, s := newHub(t), newSpoke(t)
	s.install(t, config.Options{ClusterName: "late", BootstrapKubeconfig: h.bootstrap(t)})
	a := s.start(t)
	request := h.awaitRequest(t, "late")
	s.seasoned(t)
	h.acceptWithout(t, "late", clusterv1.RoleBindingSuffixWork)
	h.work(t, "late", "late-work")
	h.approve(t, request.GetName())
	a.logged(t, "Collection cannot be read", "manifestworks", "forbidden")
	given := time.Now()
	role := clusterv1.RolePrefixManagedCluster + "late"
	h.bind(t, role+clusterv1.RoleBindingSuffixWork, clusterv1.RoleWork, "late", rbacv1.Subject{Kind: "Group", Name: clusterv1.UserPrefix + "late"})
	took := s.applied(t, "late-work").Sub(given)
	t.Logf("right given to applied: %s", took.Round(time.Millisecond))
	require.Less(t, took, soon)
}
