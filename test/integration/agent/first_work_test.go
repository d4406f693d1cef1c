// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"bytes"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	config "github.com/kubectl-ocm/kubectl-ocm/config/agent"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// work creates a work with a ConfigMap of the same name.
func (h *hub) work(t *testing.T, cluster, name string) {
	t.Helper()
	_, err := h.client.Resource(works).Namespace(cluster).Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": works.GroupVersion().String(), "kind": "ManifestWork", "metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"workload": map[string]any{"manifests": []any{map[string]any{
				"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{
					"namespace": "default",
					"name":      name,
				}, "data": map[string]any{
					"k": "v",
				}}}},
		}}},
		metav1.CreateOptions{})
	require.NoError(t, err)
}

// awaitRight waits until the agent of a cluster has the right to a verb on works: the API
// server learns of roles by a watch.
func (h *hub) awaitRight(t *testing.T, cluster, verb string) {
	t.Helper()
	reviews := schema.GroupVersionResource{Group: "authorization.k8s.io", Version: "v1", Resource: "subjectaccessreviews"}
	await(t, func() bool {
		u, err := h.client.Resource(reviews).Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": reviews.GroupVersion().String(), "kind": "SubjectAccessReview", "spec": map[string]any{
				"user": clusterv1.UserPrefix + cluster + ":agent", "groups": []any{clusterv1.UserPrefix + cluster},
				"resourceAttributes": map[string]any{
					"namespace": cluster,
					"group":     works.Group,
					"resource":  works.Resource,
					"verb":      verb,
				}}}}, metav1.CreateOptions{})
		require.NoError(t, err)
		allowed, _, _ := unstructured.NestedBool(u.Object, "status", "allowed")
		return allowed
	}, "the agent of %s may not %s works", cluster, verb)
}

// applied waits until the ConfigMap exists.
func (s *spoke) applied(t *testing.T, name string) {
	t.Helper()
	await(t, func() bool {
		_, err := s.client.Resource(configMaps).Namespace("default").Get(t.Context(), name, metav1.GetOptions{})
		return err == nil
	})
}

// logged waits until one line of the agent's log contains all the texts.
func (a *agent) logged(t *testing.T, texts ...string) {
	t.Helper()
	await(t, func() bool {
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
	})
}

// refusedRounds returns how often the agent started to read a resource of the hub and was
// refused. A reflector starts each round of its back-off with a watch, and logs each new
// refusal.
func (a *agent) refusedRounds(t *testing.T, resource string) int {
	t.Helper()
	raw, err := os.ReadFile(a.log)
	require.NoError(t, err)
	n := 0
	for line := range bytes.Lines(raw) {
		if bytes.Contains(line, []byte("Collection cannot be read")) && bytes.Contains(line, []byte(`"watch"`)) && bytes.Contains(line, []byte(`"`+resource+`"`)) {
			n++
		}
	}
	return n
}

// TestFirstWorkOfAClusterIsAppliedAsSoonAsItIsAccepted checks that a work that exists at
// acceptance does not wait for a back-off, because the agent starts to read works only
// when it is accepted.
func TestFirstWorkOfAClusterIsAppliedAsSoonAsItIsAccepted(t *testing.T) {
	h, s := newHub(t), newSpoke(t)
	s.install(t, config.Options{ClusterName: "first", BootstrapKubeconfig: h.bootstrap(t)})
	a := s.start(t)
	request := h.awaitRequest(t, "first")
	h.approve(t, request.GetName())
	await(t, func() bool { return s.secret(t.Context(), "hub-kubeconfig-secret") != nil })
	h.empower(t, "first", "")
	h.awaitRight(t, "first", "list")
	h.awaitRight(t, "first", "watch")
	h.admit(t, "first")
	h.work(t, "first", "first-work")
	s.applied(t, "first-work")
	require.Zero(t, a.refusedRounds(t, "manifestworks"))
}

// TestRightThatComesAfterTheAcceptanceIsUsed checks that the right is used.
// test/integration/reconcile checks that this happens immediately, and not after the
// back-off of a reflector.
func TestRightThatComesAfterTheAcceptanceIsUsed(t *testing.T) {
	h, s := newHub(t), newSpoke(t)
	s.install(t, config.Options{ClusterName: "late", BootstrapKubeconfig: h.bootstrap(t)})
	a := s.start(t)
	request := h.awaitRequest(t, "late")
	h.acceptWithout(t, "late", clusterv1.RoleBindingSuffixWork)
	h.work(t, "late", "late-work")
	h.approve(t, request.GetName())
	a.logged(t, "Collection cannot be read", "manifestworks", "forbidden")
	role := clusterv1.RolePrefixManagedCluster + "late"
	h.bind(t, role+clusterv1.RoleBindingSuffixWork, clusterv1.RoleWork, "late", rbacv1.Subject{Kind: "Group", Name: clusterv1.UserPrefix + "late"})
	s.applied(t, "late-work")
	require.True(t, a.running())
}
