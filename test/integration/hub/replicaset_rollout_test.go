// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	workv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1alpha1"
)

// TestWorksOfOCMsHubAreTakenOver starts a replica set on works that Open Cluster
// Management's hub has created for it: with generated names, another field manager, and
// one of them from an older template.
func TestWorksOfOCMsHubAreTakenOver(t *testing.T) {
	f := newFan(t, "takeover", 2)
	made := map[string]types.UID{}
	for i, cluster := range f.clusters {
		option := map[int]string{1: `"deleteOption":{"propagationPolicy":"Orphan"},`}[i]
		u := decoded(t, fmt.Sprintf(`{"apiVersion":"work.open-cluster-management.io/v1","kind":"ManifestWork","metadata":{"generateName":"web","labels":{"team":"a",
			"work.open-cluster-management.io/manifestworkreplicaset":"takeover.web","work.open-cluster-management.io/placementname":"p"}},
			"spec":{%s"workload":{"manifests":[{"apiVersion":"v1","kind":"ConfigMap",
			"metadata":{"namespace":"default","name":"settings"},"data":{"value":"one"}}]}}}`, option))
		live, err := f.dyn.Resource(works).Namespace(cluster).Create(t.Context(), u, metav1.CreateOptions{FieldManager: "work"})
		require.NoError(t, err)
		made[cluster] = live.GetUID()
	}
	f.place(t, "p", f.clusters...)
	f.deploy(t, "web", "one", "", "p")
	same := func() {
		t.Helper()
		list := f.works(t, "web")
		require.Len(t, list, 2, "no cluster has two")
		for _, w := range list {
			require.Equal(t, made[w.GetNamespace()], w.GetUID())
		}
	}
	soon(t, func() bool {
		return !slices.ContainsFunc(f.works(t, "web"), func(w unstructured.Unstructured) bool {
			return w.Object["spec"].(map[string]any)["deleteOption"] != nil
		})
	}, "what is not of the template goes")
	for _, cluster := range f.clusters {
		f.succeed(t, "web", cluster)
	}
	f.awaitCondition(t, "web", workv1alpha1.ConditionPlacementRolledOut, "True "+workv1alpha1.ReasonComplete)
	same()
	f.deploy(t, "web", "two", "", "p")
	f.awaitDelivered(t, "web", f.clusters[0]+"=two", f.clusters[1]+"=two")
	same()
}

func TestLabelsOfAReplicaSetComeAndGo(t *testing.T) {
	f := newFan(t, "labels", 1)
	f.place(t, "p", f.clusters...)
	// A name with a dot is as good as any other.
	const name = "web.v2"
	f.deploy(t, name, "one", "", "p")
	f.awaitDelivered(t, name, f.clusters[0]+"=one")
	_, err := f.dyn.Resource(replicaSets).Namespace(f.namespace).Patch(
		t.Context(), name, types.MergePatchType, []byte(`{"metadata":{"labels":{"team":null,"tier":"b"}}}`),
		metav1.PatchOptions{},
	)
	require.NoError(t, err)
	var last map[string]string
	soon(t, func() bool {
		last = f.works(t, name)[0].GetLabels()
		return last["tier"] == "b" && last["team"] == ""
	}, "%v", &last)
	f.succeed(t, name, f.clusters[0])
	f.awaitCondition(t, name, workv1alpha1.ConditionPlacementRolledOut, "True "+workv1alpha1.ReasonComplete)
}

// TestADeadlineLetsARolloutPass has three clusters that never report: the first one may
// fail, the second one exceeds the limit.
func TestADeadlineLetsARolloutPass(t *testing.T) {
	t.Parallel()
	f := newFan(t, "deadline", 3)
	c := f.clusters
	f.place(t, "p", c...)
	f.deploy(
		t, "web", "one", "",
		`{"name":"p","rolloutStrategy":{"type":"Progressive","progressive":{"maxConcurrency":1,"maxFailures":1,"progressDeadline":"2s"}}}`,
	)
	f.awaitDelivered(t, "web", c[0]+"=one", c[1]+"=one")
	made := map[string]time.Time{}
	for _, w := range f.works(t, "web") {
		made[w.GetNamespace()] = w.GetCreationTimestamp().Time
	}
	require.Greater(t, made[c[1]].Sub(made[c[0]]), time.Duration(0), "one after the other: the deadline is longer than the second in which the API server counts")
	var message string
	soon(t, func() bool {
		set := f.awaitCondition(t, "web", workv1alpha1.ConditionPlacementRolledOut, "False "+workv1alpha1.ReasonProgressing)
		message = apimeta.FindStatusCondition(set.Status.Conditions, workv1alpha1.ConditionPlacementRolledOut).Message
		return message == "0 of 3 clusters succeeded, 1 wait for their turn, 2 are out of time; more failed than maxFailures allows, no further one is started"
	}, "%s", &message)
	require.Equal(t, []string{c[0] + "=one", c[1] + "=one"}, f.delivered(t, "web"))
	// A cluster that recovers late lets the rollout continue.
	f.succeed(t, "web", c[0])
	f.awaitDelivered(t, "web", c[0]+"=one", c[1]+"=one", c[2]+"=one")
	f.succeed(t, "web", c[1])
	f.succeed(t, "web", c[2])
	f.awaitCondition(t, "web", workv1alpha1.ConditionPlacementRolledOut, "True "+workv1alpha1.ReasonComplete)

	var told []string
	soon(t, func() bool {
		events, err := f.kube.EventsV1().Events(f.namespace).List(context.Background(), metav1.ListOptions{})
		require.NoError(t, err)
		told = nil
		for _, e := range events.Items {
			// The set may be seen before its placement and the decisions.
			if e.Reason != workv1alpha1.ReasonPlacementDecisionNotFound && e.Reason != workv1alpha1.ReasonPlacementDecisionEmpty {
				told = append(told, e.Type+" "+e.Reason)
			}
		}
		slices.Sort(told)
		once := []string{"Normal AsExpected", "Normal RolledOut", "Warning RolloutStopped"}
		// On a slow machine, the third cluster runs out of time before the second one reports.
		return slices.Equal(told, once) || slices.Equal(told, append(once, "Warning RolloutStopped"))
	}, "one Event a change of state: %v", &told)
}

func TestOnlyThePlacementWithWrongGroupsIsHeldUp(t *testing.T) {
	f := newFan(t, "groups", 2)
	f.place(t, "bad")
	body := `{"metadata":{"labels":{"cluster.open-cluster-management.io/decision-group-index":"first"}}}`
	_, err := f.dyn.Resource(decisions).Namespace(f.namespace).Patch(t.Context(), "bad-1", types.MergePatchType, []byte(body), metav1.PatchOptions{})
	require.NoError(t, err)
	f.place(t, "bad", f.clusters[0]) // after the label, so that the hub never sees it selected in a right group
	f.place(t, "good", f.clusters[1])
	f.deploy(t, "web", "one", "", "bad", "good")
	f.awaitDelivered(t, "web", f.clusters[1]+"=one")
	set := f.awaitCondition(t, "web", workv1alpha1.ConditionPlacementVerified, "False "+workv1alpha1.ReasonNotAsExpected)
	require.Contains(t, apimeta.FindStatusCondition(set.Status.Conditions, workv1alpha1.ConditionPlacementVerified).Message, "bad: ")
}

// TestWhatCannotBeWrittenIsSaid selects one cluster with a namespace and one without, for
// a template with an executor.
func TestWhatCannotBeWrittenIsSaid(t *testing.T) {
	f := newFan(t, "unwritten", 1)
	f.place(t, "p", f.clusters[0], "nowhere")
	f.deploy(t, "web", "one", "", "p")
	body, err := json.Marshal(map[string]any{"spec": map[string]any{"manifestWorkTemplate": map[string]any{
		"executor": map[string]any{
			"subject": map[string]any{
				"type":           "ServiceAccount",
				"serviceAccount": map[string]any{"namespace": "default", "name": "deployer"},
			},
		},
	}}})
	require.NoError(t, err)
	_, err = f.dyn.Resource(replicaSets).Namespace(f.namespace).Patch(t.Context(), "web", types.MergePatchType, body, metav1.PatchOptions{})
	require.NoError(t, err)
	soon(t, func() bool {
		list := f.works(t, "web")
		return len(list) == 1 && list[0].Object["spec"].(map[string]any)["executor"] != nil
	}, "the hub may name the executor of the template")
	var last *workv1alpha1.ManifestWorkReplicaSet
	soon(t, func() bool {
		last, err = f.get(t, "web")
		require.NoError(t, err)
		c := apimeta.FindStatusCondition(last.Status.Conditions, workv1alpha1.ConditionManifestworkApplied)
		return c != nil && c.Reason == workv1alpha1.ReasonNotAsExpected && c.ObservedGeneration == last.Generation &&
			strings.Contains(c.Message, "ManifestWorks cannot be written: ") && strings.Contains(c.Message, `namespaces "nowhere" not found`)
	}, "%+v", &last)
}
