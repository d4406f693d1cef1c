// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
)

var (
	addOnGroup    = schema.GroupVersion{Group: "addon.open-cluster-management.io", Version: "v1alpha1"}
	instances     = addOnGroup.WithResource("managedclusteraddons")
	registrations = addOnGroup.WithResource("clustermanagementaddons")
	templates     = addOnGroup.WithResource("addontemplates")
	configs       = addOnGroup.WithResource("addondeploymentconfigs")
)

const agent = `apiVersion: apps/v1
kind: Deployment
metadata: {name: agent, namespace: agents}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: agent, image: "quay.io/a/agent:1", args: ["--cluster={{CLUSTER_NAME}}"]}]}
`

func TestAddOnsAreMadeAndBroughtToClusters(t *testing.T) {
	hub := harness.Shared(t, "hub")
	kubeconfig(t, hub)
	client := asHub(t, hub)
	for _, name := range []string{"a1", "a2"} {
		registers(t, client, name, true)
		_, err := client.Resource(namespaces).Create(t.Context(), object("v1", "Namespace", "", name, nil), metav1.CreateOptions{})
		if !apierrors.IsAlreadyExists(err) {
			require.NoError(t, err)
		}
	}
	addOn := func(words ...string) said {
		return runWith(t, agent, append(append([]string{"addon"}, words...), "--context", "hub")...)
	}
	twice := func(first string, words ...string) {
		got := addOn(words...)
		require.Zero(t, got.code)
		require.Contains(t, got.out, first)
		again := addOn(words...)
		require.Zero(t, again.code)
		for line := range strings.Lines(again.out) {
			require.Contains(t, line, "unchanged")
		}
	}
	get := func(resource schema.GroupVersionResource, namespace, name string) *unstructured.Unstructured {
		u, err := client.Resource(resource).Namespace(namespace).Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err)
		return u
	}

	twice("/probe-0.1.0 created", "create", "probe", "-f", "-", "--version", "0.1.0", "--hub-permission", "clusterrole/view", "--labels", "team=sre")
	require.Equal(t, 6, addOn("create", "probe", "-f", "-", "--version", "0.2.0").code)
	twice("/probe configured", "create", "probe", "-f", "-", "--version", "0.2.0", "--overwrite", "--display-name", "Probe")
	require.Equal(t, map[string]string{"team": "sre"}, get(registrations, "", "probe").GetLabels())
	require.Contains(t, addOn("create", "probe", "-f", "-", "--render", "a1").out, "--cluster=a1")

	twice("probe created on a1", "enable", "probe", "-c", "a1", "--set", "A=1", "--labels", "x=y", "--install-namespace", "agents")
	twice("probe configured on a1", "enable", "probe", "-c", "a1", "--set", "B=2", "--annotations", "k=v")
	variables, _, err := unstructured.NestedSlice(get(configs, "a1", "probe").Object, "spec", "customizedVariables")
	require.NoError(t, err)
	require.Len(t, variables, 2)
	require.Equal(t, map[string]string{"x": "y"}, get(instances, "a1", "probe").GetLabels())
	runsOut(t, "", "nothing has reported yet whether it works", "addon", "enable", "probe", "-c", "a1", "--wait", "--context", "hub")

	placement := object("cluster.open-cluster-management.io/v1beta1", "Placement", "default", "probes", map[string]any{"spec": map[string]any{}})
	places := client.Resource(schema.GroupVersionResource{
		Group:    "cluster.open-cluster-management.io",
		Version:  "v1beta1",
		Resource: "placements",
	}).Namespace("default")
	_, err = places.Create(t.Context(), placement, metav1.CreateOptions{})
	require.NoError(t, err)
	runsOut(t, "", "placement default/probes is not decided yet", "addon", "enable", "probe", "--placement", "default/probes", "--context", "hub")
	_, err = places.Patch(
		t.Context(), "probes", types.MergePatchType,
		[]byte(
			`{"status":{"conditions":[{"type":"PlacementSatisfied","status":"False","reason":"NoManagedClusterMatched",
				"message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`,
		),
		metav1.PatchOptions{}, "status",
	)
	require.NoError(t, err)
	require.Equal(t, 6, addOn("enable", "probe", "--placement", "default/probes").code, "it would be taken from a1")
	twice("/probe configured", "enable", "probe", "--placement", "default/probes", "--yes")
	require.Equal(t, 6, addOn("enable", "probe", "-c", "a2").code, "no placement selects it")

	twice("probe deleted on a1", "disable", "probe", "-c", "a1", "--yes")
	require.Contains(t, get(clusters, "", "a1").GetAnnotations(), "exclude-addon.open-cluster-management.io/probe")
	require.NotContains(t, get(clusters, "", "a2").GetAnnotations(), "exclude-addon.open-cluster-management.io/probe")

	twice("/probe deleted", "delete", "probe", "--yes", "--ignore-not-found")
	left, err := client.Resource(templates).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Empty(t, left.Items)
}
