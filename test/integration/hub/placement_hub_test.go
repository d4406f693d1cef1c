// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
)

const (
	satisfiedKind     = clusterv1beta1.ConditionSatisfied
	misconfiguredKind = clusterv1beta1.ConditionMisconfigured
)

func TestAPlacementIsDecidedAndFollowsItsClusters(t *testing.T) {
	f, names := newField(t, "pfollow", 3)
	f.place(t, "p", `{"numberOfClusters":5}`)
	f.awaitGroups(t, "p", "0: "+strings.Join(names, " "))
	require.Equal(t, "2 cluster decisions unscheduled", f.awaitVerdict(t, "p", satisfiedKind, "False NotAllDecisionsScheduled"))
	f.awaitVerdict(t, "p", misconfiguredKind, "False Succeedconfigured")

	f.join(t, "pfollow-3", nil)
	f.join(t, "pfollow-4", nil)
	f.awaitGroups(t, "p", "0: pfollow-0 pfollow-1 pfollow-2 pfollow-3 pfollow-4")
	f.awaitVerdict(t, "p", satisfiedKind, "True AllDecisionsScheduled")

	require.NoError(t, patch(f.dyn, "pfollow-0", `{"metadata":{"labels":{"cluster.open-cluster-management.io/clusterset":"default"}}}`))
	f.awaitGroups(t, "p", "0: pfollow-1 pfollow-2 pfollow-3 pfollow-4")
	require.NoError(t, f.dyn.Resource(clusters).Delete(t.Context(), "pfollow-1", metav1.DeleteOptions{}))
	f.awaitGroups(t, "p", "0: pfollow-2 pfollow-3 pfollow-4")

	require.NoError(t, f.dyn.Resource(decisions).Namespace(f.namespace).Delete(t.Context(), "p-decision-1", metav1.DeleteOptions{}))
	f.awaitGroups(t, "p", "0: pfollow-2 pfollow-3 pfollow-4")
	f.merge(t, "decision", "p-decision-1", `{"metadata":{"labels":{"cluster.open-cluster-management.io/placement":null,"team":"x"}}}`)
	f.awaitGroups(t, "p", "0: pfollow-2 pfollow-3 pfollow-4")
	require.Equal(t, "x", f.objects(t, "p")[0].Labels["team"], "labels of others stay")
	f.merge(t, "decision", "p-decision-1", `{"status":{"decisions":[{"clusterName":"nobody","reason":""}]}}`, "status")
	f.awaitGroups(t, "p", "0: pfollow-2 pfollow-3 pfollow-4")

	require.NoError(t, f.dyn.Resource(placements).Namespace(f.namespace).Delete(t.Context(), "p", metav1.DeleteOptions{}))
	soon(t, func() bool { return len(f.objects(t, "p")) == 0 }, "decisions go with their placement")
}

func TestGroupsOfDecisions(t *testing.T) {
	f, _ := newField(t, "pgroups", 0)
	for i := range 4 {
		f.join(t, fmt.Sprintf("pgroups-%d", i), map[string]string{"canary": fmt.Sprint(i >= 2)})
	}
	f.place(
		t, "p",
		`{"decisionStrategy":{"groupStrategy":{"clustersPerDecisionGroup":1,
			"decisionGroups":[{"groupName":"canary","groupClusterSelector":{"labelSelector":{"matchLabels":{"canary":"true"}}}}]}}}`,
	)
	f.awaitGroups(t, "p", "canary 0: pgroups-2", "canary 1: pgroups-3", "2: pgroups-0", "3: pgroups-1")
	// The status follows the decisions, and an earlier one may count fewer clusters.
	soon(t, func() bool { return f.satisfied(t, "p", 4) && len(f.placement(t, "p").Status.DecisionGroups) == 4 }, "the groups are not told")
	f.place(t, "p", `{"decisionStrategy":{"groupStrategy":{"clustersPerDecisionGroup":"50%"}}}`)
	f.awaitGroups(t, "p", "0: pgroups-0 pgroups-1", "1: pgroups-2 pgroups-3")
}

func TestWithoutASetNothingIsSelected(t *testing.T) {
	f, _ := newField(t, "psets", 1)
	require.NoError(t, f.dyn.Resource(setBindings).Namespace(f.namespace).Delete(t.Context(), f.set, metav1.DeleteOptions{}))
	f.place(t, "p", `{}`)
	f.awaitGroups(t, "p", "0:")
	require.Equal(t, "No valid ManagedClusterSetBindings found in placement namespace", f.awaitVerdict(t, "p", satisfiedKind, "False NoManagedClusterSetBindings"))
	f.bind(t, f.set)
	f.awaitGroups(t, "p", "0: psets-0")
	f.place(t, "p", `{"clusterSets":["other"]}`)
	require.Equal(t, "None of ManagedClusterSets [other] is bound to placement namespace", f.awaitVerdict(t, "p", satisfiedKind, "False NoIntersection"))
	f.awaitGroups(t, "p", "0:")
	f.place(t, "p", `{}`)
	f.awaitGroups(t, "p", "0: psets-0")
	require.Empty(t, f.warned(t, f.namespace, `{"clusterSets":["psets"]}`))
	require.Contains(
		t, f.warned(t, f.namespace, `{"clusterSets":["psets","other"]}`),
		`spec.clusterSets[1]: namespace psets has no ManagedClusterSetBinding "other"`,
	)
	require.Contains(t, f.warned(t, "default", `{}`), "namespace default has no ManagedClusterSetBinding, so nothing is selected")
	require.NoError(t, f.dyn.Resource(clusterSets).Delete(t.Context(), f.set, metav1.DeleteOptions{}))
	f.awaitGroups(t, "p", "0:")
}

// warned returns the warnings of the API server when a placement is created.
func (f *field) warned(t *testing.T, namespace, spec string) string {
	t.Helper()
	w := &warnings{}
	cfg := rest.CopyConfig(f.Config)
	cfg.WarningHandler, cfg.WarningHandlerWithContext = w, nil
	dyn, err := dynamic.NewForConfig(cfg)
	require.NoError(t, err)
	u := decoded(t, fmt.Sprintf(`{"apiVersion":"cluster.open-cluster-management.io/v1beta1","kind":"Placement","metadata":{"name":"trial"},"spec":%s}`, spec))
	_, err = dyn.Resource(placements).Namespace(namespace).Create(t.Context(), u, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	require.NoError(t, err)
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.texts, "\n")
}

func TestTaintsAndTolerations(t *testing.T) {
	f, _ := newField(t, "ptaints", 2)
	require.NoError(t, patch(f.dyn, "ptaints-1", `{"spec":{"taints":[{"key":"broken","value":"yes","effect":"NoSelect"}]}}`))
	f.place(t, "p", `{}`)
	f.awaitGroups(t, "p", "0: ptaints-0")
	f.place(t, "p", `{"tolerations":[{"key":"broken","operator":"Exists"}]}`)
	f.awaitGroups(t, "p", "0: ptaints-0 ptaints-1")
	require.NoError(t, patch(f.dyn, "ptaints-0", `{"spec":{"taints":[{"key":"other","effect":"NoSelect"}]}}`))
	f.place(t, "p", `{}`)
	require.Contains(t, f.awaitVerdict(t, "p", satisfiedKind, "False NoManagedClusterMatched"), "broken", "the taints are named that did it")
}

func TestAFrozenPlacementIsLeftAlone(t *testing.T) {
	f, _ := newField(t, "pfrozen", 1)
	f.place(t, "p", `{}`)
	f.awaitGroups(t, "p", "0: pfrozen-0")
	f.merge(t, "placement", "p", `{"metadata":{"annotations":{"cluster.open-cluster-management.io/experimental-scheduling-disable":"true"}}}`)
	f.place(t, "q", `{}`)
	f.awaitGroups(t, "q", "0: pfrozen-0") // the hub sees this placement after the change of the other
	f.join(t, "pfrozen-1", nil)
	f.awaitGroups(t, "q", "0: pfrozen-0 pfrozen-1")
	require.Equal(t, []string{"0: pfrozen-0"}, f.groups(t, "p"), "what the other has, this one has not")
	f.merge(t, "placement", "p", `{"metadata":{"annotations":null}}`)
	f.awaitGroups(t, "p", "0: pfrozen-0 pfrozen-1")
}

func TestBadPlacementsAreRefusedAndStoredOnesHarmNobody(t *testing.T) {
	f, _ := newField(t, "pbad", 1)
	bad := decoded(t, `{"apiVersion":"cluster.open-cluster-management.io/v1beta1","kind":"Placement","metadata":{"name":"p"},"spec":{"numberOfClusters":-1}}`)
	_, err := f.dyn.Resource(placements).Namespace(f.namespace).Create(t.Context(), bad, metav1.CreateOptions{})
	require.True(t, apierrors.IsBadRequest(err), "%v", err)
	require.ErrorContains(t, err, "spec.numberOfClusters")

	f.place(t, "p", `{"numberOfClusters":1}`)
	f.awaitGroups(t, "p", "0: pbad-0")
	// Store it while admission is off.
	hooks := f.kube.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	const name = "placementvalidators.admission.cluster.open-cluster-management.io"
	require.True(t, eventually(func() bool {
		if _, err := hooks.Patch(
			t.Context(), name, types.JSONPatchType,
			[]byte(`[{"op":"replace","path":"/webhooks/0/rules/0/operations","value":["CONNECT"]}]`),
			metav1.PatchOptions{},
		); err != nil {
			return false
		}
		_, err := f.dyn.Resource(placements).Namespace(f.namespace).Patch(
			t.Context(), "p", types.MergePatchType, []byte(`{"spec":{"numberOfClusters":-1}}`),
			metav1.PatchOptions{},
		)
		return err == nil
	}))
	require.Contains(t, f.awaitVerdict(t, "p", misconfiguredKind, "True Misconfigured"), "spec.numberOfClusters")
	require.Equal(t, []string{"0: pbad-0"}, f.groups(t, "p"), "the last decisions are kept")
	require.EqualValues(t, 1, f.placement(t, "p").Status.NumberOfSelectedClusters)
	f.place(t, "other", `{}`)
	f.awaitGroups(t, "other", "0: pbad-0")
	f.merge(t, "placement", "p", `{"metadata":{"labels":{"a":"b"}}}`)
	f.place(t, "p", `{"numberOfClusters":1}`)
	f.awaitVerdict(t, "p", misconfiguredKind, "False Succeedconfigured")
}

func TestExpressionsSeeTheWholeCluster(t *testing.T) {
	f, _ := newField(t, "pcel", 2)
	f.place(t, "plain", `{}`)
	f.awaitGroups(t, "plain", "0: pcel-0 pcel-1")
	require.NoError(t, patch(f.dyn, "pcel-1", `{"metadata":{"annotations":{"tier":"gold"}}}`))
	require.NoError(t, patch(f.dyn, "pcel-1", `{"status":{"version":{"kubernetes":"1.36.3"},"clusterClaims":[{"name":"region","value":"eu"}]}}`, "status"))
	f.place(
		t, "p",
		`{"predicates":[{"requiredClusterSelector":{"celSelector":{"celExpressions":[
			"managedCluster.metadata.annotations[\"tier\"] == \"gold\"",
			"managedCluster.status.version.kubernetes == \"1.36.3\""]}}}]}`,
	)
	f.awaitGroups(t, "p", "0: pcel-1")
	f.place(t, "claim", `{"predicates":[{"requiredClusterSelector":{"claimSelector":{"matchExpressions":[{"key":"region","operator":"In","values":["eu"]}]}}}]}`)
	f.awaitGroups(t, "claim", "0: pcel-1")
	require.NoError(t, patch(f.dyn, "pcel-0", `{"status":{"clusterClaims":[{"name":"region","value":"eu"}]}}`, "status"))
	f.awaitGroups(t, "claim", "0: pcel-0 pcel-1")
}

func TestResourcesRankClusters(t *testing.T) {
	f, _ := newField(t, "pcpu", 3)
	for i, cpu := range []string{"2", "10", "6"} {
		body := fmt.Sprintf(`{"status":{"capacity":{"cpu":"16"},"allocatable":{"cpu":%q}}}`, cpu)
		require.NoError(t, patch(f.dyn, fmt.Sprintf("pcpu-%d", i), body, "status"))
	}
	f.place(
		t, "p",
		`{"numberOfClusters":1,"prioritizerPolicy":{"mode":"Exact","configurations":[{"scoreCoordinate":{"type":"BuiltIn","builtIn":"ResourceAllocatableCPU"}}]}}`,
	)
	f.awaitGroups(t, "p", "0: pcpu-1")
}
