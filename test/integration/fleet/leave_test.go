// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
)

// TestLeavingWithoutAnAgent removes a cluster whose agent does not do its part: it does
// not run, or its Klusterlet was deleted by hand.
func TestLeavingWithoutAnAgent(t *testing.T) {
	t.Parallel()
	hub := harness.FreshWithNode(t, "hub", map[string]string{"ocm-hub": harness.Program(t, "controllers/ocm-hub")})
	spoke := harness.FreshWithNode(t, "spoke", map[string]string{"ocm-agent": harness.Program(t, "controllers/ocm-agent")})
	kubeconfig(t, hub, spoke)
	before := inventory(t, spoke)
	require.Zero(t, run(t, "hub", "init", "--context", "hub", "--timeout", "5m").code)
	join := []string{"join", "cluster1", "--context", "spoke", "--hub-context", "hub", "--accept", "--timeout", "5m"}
	leave := []string{"unjoin", "cluster1", "--context", "spoke", "--hub-context", "hub", "--yes"}
	unjoin := append(slices.Clone(leave), "--timeout")

	require.Zero(t, run(t, join...).code)
	require.Zero(t, run(t, "accept", "cluster1", "--deny", "--context", "hub").code)
	require.Zero(t, run(t, "accept", "cluster1", "--wait", "--timeout", "5m", "--context", "hub").code, "it needs no new request")
	require.Zero(t, runWith(t, configMap, "work", "apply", "web", "-f", "-", "-c", "cluster1", "--context", "hub", "--wait", "--timeout", "5m").code)
	deployments := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	_, err := spoke.Dynamic(t).Resource(deployments).Namespace("open-cluster-management-agent").Patch(t.Context(), "klusterlet-agent",
		types.MergePatchType, []byte(`{"spec":{"replicas":0}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	pods := spoke.Dynamic(t).Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).Namespace("open-cluster-management-agent")
	eventually(t, func() bool {
		list, err := pods.List(t.Context(), metav1.ListOptions{})
		return err == nil && len(list.Items) == 0
	}, patience, 100*time.Millisecond)

	// The agent ended right after it had begun with another work.
	records := spoke.Dynamic(t).Resource(schema.GroupVersionResource{Group: "work.open-cluster-management.io", Version: "v1", Resource: "appliedmanifestworks"})
	list, err := records.List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, list.Items, 1)
	begun := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "work.open-cluster-management.io/v1", "kind": "AppliedManifestWork", "spec": list.Items[0].Object["spec"],
		"metadata": map[string]any{
			"name": strings.TrimSuffix(list.Items[0].GetName(), "web") + "begun",
			"annotations": map[string]any{
				workv1.AnnotationIntent: `[{"version":"v1","resource":"configmaps","namespace":"default","name":"a"},
					{"version":"v1","resource":"configmaps","namespace":"default","name":"b"}]`,
			},
		},
	}}
	require.NoError(t, unstructured.SetNestedField(begun.Object, "begun", "spec", "manifestWorkName"))
	_, err = records.Create(t.Context(), begun, metav1.CreateOptions{})
	require.NoError(t, err)

	stuck := runsOut(t, "", "it does not run: deployment open-cluster-management-agent/klusterlet-agent is scaled to 0", leave...)
	require.Contains(t, stuck.err, "kubectl ocm unjoin cluster1 --context spoke --hub-context hub --force")
	forced := run(t, append(unjoin, "60s", "--force")...)
	require.Zero(t, forced.code, "the hub still believes in the agent, and it is not waited for")
	require.Contains(t, forced.err, "left in place")
	require.Contains(t, forced.err, "1 object of work web in appliedmanifestwork/")
	require.Contains(t, forced.err, "2 objects of work begun in appliedmanifestwork/")
	_, err = spoke.Dynamic(t).Resource(configMaps).Namespace("default").Get(t.Context(), "greeting", metav1.GetOptions{})
	require.NoError(t, err, "what was told to stay is there")

	require.Zero(t, run(t, join...).code)
	klusterlets := schema.GroupVersionResource{Group: "operator.open-cluster-management.io", Version: "v1", Resource: "klusterlets"}
	require.NoError(t, spoke.Dynamic(t).Resource(klusterlets).Delete(t.Context(), "klusterlet", metav1.DeleteOptions{}))
	eventually(t, func() bool {
		list, err := spoke.Dynamic(t).Resource(klusterlets).List(t.Context(), metav1.ListOptions{})
		return err != nil || len(list.Items) == 0
	}, patience, 100*time.Millisecond)
	require.Zero(t, run(t, append(unjoin, "60s")...).code)
	asBefore(t, spoke, before, "customresourcedefinitions/appliedmanifestworks.work.open-cluster-management.io")
	require.Contains(t, run(t, append(unjoin, "60s")...).out, "unchanged")

	cleaned := run(t, "hub", "clean", "--context", "hub", "--yes", "--timeout", "5m", "-o", "json")
	require.Zero(t, cleaned.code)
	require.Contains(t, cleaned.out, `"kept": [`)
	require.Contains(t, run(t, "hub", "clean", "--context", "hub", "--yes").err, "kubectl delete namespace cluster1 --context hub")
	noHub := run(t, append(unjoin, "60s")...)
	require.Equal(t, 1, noHub.code)
	require.Contains(t, noHub.err, "when the hub is gone: kubectl ocm unjoin cluster1 --context spoke")
}
