// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	config "github.com/kubectl-ocm/kubectl-ocm/config/agent"
	"github.com/kubectl-ocm/kubectl-ocm/config/crd"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

var properties = schema.GroupVersionResource{Group: "about.k8s.io", Version: "v1alpha1", Resource: "clusterproperties"}

func (s *spoke) property(t *testing.T, name, value string, labels map[string]any) {
	t.Helper()
	apply(t, s.client, &unstructured.Unstructured{Object: map[string]any{"apiVersion": properties.GroupVersion().String(), "kind": "ClusterProperty",
		"metadata": map[string]any{"name": name, "labels": labels}, "spec": map[string]any{"value": value}}})
}

// defineProperties installs the definition of properties, which is not the agent's own.
func (s *spoke) defineProperties(t *testing.T) {
	t.Helper()
	definition, err := crd.Get("clusterproperties.about.k8s.io")
	require.NoError(t, err)
	apply(t, s.client, definition)
	s.awaitServed(t, properties)
}

// removeProperties removes the definition and waits until it is gone: an API server that
// is still removing it would treat a new definition as the old one, and remove its
// objects.
func (s *spoke) removeProperties(t *testing.T) {
	t.Helper()
	name := properties.GroupResource().String()
	require.NoError(t, s.client.Resource(definitions).Delete(t.Context(), name, metav1.DeleteOptions{}))
	await(t, func() bool {
		_, err := s.client.Resource(definitions).Get(t.Context(), name, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	}, "definition %s stays", name)
}

// awaitServed waits until the API server serves a resource of a definition.
func (s *spoke) awaitServed(t *testing.T, resource schema.GroupVersionResource) {
	t.Helper()
	await(t, func() bool {
		_, err := s.client.Resource(resource).List(t.Context(), metav1.ListOptions{})
		return err == nil
	}, "%s are not served", resource.Resource)
}

// awaitClaims waits until the hub shows exactly these claims, as name=value.
func (h *hub) awaitClaims(t *testing.T, cluster string, want ...string) {
	t.Helper()
	var got []string
	await(t, func() bool {
		got = nil
		for _, claim := range h.cluster(t.Context(), cluster).Status.ClusterClaims {
			got = append(got, claim.Name+"="+claim.Value)
		}
		return strings.Join(got, " ") == strings.Join(want, " ")
	}, "want %v, got %v", want, func() any { return got })
}

func TestClaimsAndPropertiesAreMirrored(t *testing.T) {
	h, s := newHub(t), newSpoke(t)
	s.install(t, config.Options{ClusterName: "facts", BootstrapKubeconfig: h.bootstrap(t)})
	claimsDefinition, err := crd.Get("clusterclaims.cluster.open-cluster-management.io")
	require.NoError(t, err)
	apply(t, s.client, claimsDefinition)
	flags := []string{"agent", "--spoke-cluster-name=facts", "--max-custom-cluster-claims=5", "--reserved-cluster-claim-suffixes=.mine.io"}
	a := s.start(t, append(flags, "--feature-gates=ClusterProperty=true")...)
	request := h.awaitRequest(t, "facts")
	s.awaitServed(t, claims)
	s.claim(t, "size", "small", nil)
	require.Empty(t, h.cluster(t.Context(), "facts").Status.ClusterClaims, "nothing is reported before the cluster has joined")
	h.accept(t, "facts")
	h.approve(t, request.GetName())

	// The definition of properties is not installed: claims do not wait for it.
	h.awaitClaims(t, "facts", "size=small")
	s.defineProperties(t)
	s.property(t, "size", "large", nil)
	s.property(t, "id.k8s.io", "one", nil)
	s.property(t, "secret", "x", map[string]any{"open-cluster-management.io/spoke-only": ""})
	h.awaitClaims(t, "facts", "id.k8s.io=one", "size=large")
	s.property(t, "id.k8s.io", "two", nil)
	h.awaitClaims(t, "facts", "id.k8s.io=two", "size=large")
	require.NoError(t, s.client.Resource(properties).Delete(t.Context(), "size", metav1.DeleteOptions{}))
	h.awaitClaims(t, "facts", "id.k8s.io=two", "size=small")

	// A value that is too large for a ManagedCluster affects nothing else, and is
	// reported.
	s.property(t, "essay", strings.Repeat("x", 100_000), nil)
	c := h.awaitCondition(t, "facts", clusterv1.ConditionClaimsReported, metav1.ConditionFalse)
	told := apimeta.FindStatusCondition(c.Status.Conditions, clusterv1.ConditionClaimsReported)
	require.Equal(t, clusterv1.ReasonClaimsInvalid, told.Reason)
	require.Contains(t, told.Message, "claims essay cannot be reported")
	await(t, func() bool { return h.hasEvent(t, "facts", clusterv1.ReasonClaimsInvalid) })
	require.NoError(t, s.client.Resource(properties).Delete(t.Context(), "essay", metav1.DeleteOptions{}))
	await(t, func() bool {
		return apimeta.FindStatusCondition(h.cluster(t.Context(), "facts").Status.Conditions, clusterv1.ConditionClaimsReported) == nil
	})

	// Ten custom claims with a limit of five, and one that is reserved by its suffix.
	for i := range 9 {
		s.claim(t, fmt.Sprintf("c%d", i), "v", nil)
	}
	s.claim(t, "x.mine.io", "v", nil)
	h.awaitClaims(t, "facts", "id.k8s.io=two", "x.mine.io=v", "c0=v", "c1=v", "c2=v", "c3=v", "c4=v")
	await(t, func() bool { return h.hasEvent(t, "facts", clusterv1.ReasonClaimsTruncated) })

	// The definition is removed, and its objects with it.
	s.removeProperties(t)
	h.awaitClaims(t, "facts", "x.mine.io=v", "c0=v", "c1=v", "c2=v", "c3=v", "c4=v")
	s.defineProperties(t)
	s.property(t, "id.k8s.io", "three", nil)
	h.awaitClaims(t, "facts", "id.k8s.io=three", "x.mine.io=v", "c0=v", "c1=v", "c2=v", "c3=v", "c4=v")

	// Both gates off: the list becomes empty.
	require.Zero(t, a.stop())
	s.start(t, append(flags, "--feature-gates=ClusterClaim=false,ClusterProperty=false")...)
	h.awaitClaims(t, "facts")
}
