// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1alpha1"
	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
)

var scores = clusterv1alpha1.GroupVersion.WithResource("addonplacementscores")

// score writes a score of a cluster, valid until a point in time, or without end when
// until is empty.
func (f *field) score(t *testing.T, cluster string, value int, until string) {
	t.Helper()
	u := decoded(t, `{"apiVersion":"cluster.open-cluster-management.io/v1alpha1","kind":"AddOnPlacementScore","metadata":{"name":"usage"}}`)
	_, err := f.dyn.Resource(scores).Namespace(cluster).Apply(t.Context(), "usage", u, metav1.ApplyOptions{FieldManager: "test"})
	require.NoError(t, err)
	body := fmt.Sprintf(`{"status":{"scores":[{"name":"cpu","value":%d}],"validUntil":%s}}`, value, until)
	_, err = f.dyn.Resource(scores).Namespace(cluster).Patch(t.Context(), "usage", types.MergePatchType, []byte(body), metav1.PatchOptions{}, "status")
	require.NoError(t, err)
}

// eventsOf returns the Events on a placement as "type reason/action decision: note".
func (f *field) eventsOf(t *testing.T, name string) []string {
	t.Helper()
	list, err := f.kube.EventsV1().Events(f.namespace).List(context.Background(), metav1.ListOptions{})
	require.NoError(t, err)
	slices.SortFunc(list.Items, func(a, b eventsv1.Event) int { return a.EventTime.Compare(b.EventTime.Time) })
	var out []string
	for _, e := range list.Items {
		if e.Regarding.Kind != "Placement" || e.Regarding.Name != name || e.ReportingController != "placement-controller" {
			continue
		}
		require.Equal(t, "PlacementDecision", e.Related.Kind)
		require.Equal(t, clusterv1beta1.GroupVersion.String(), e.Related.APIVersion)
		require.Equal(t, string(f.placement(t, name).UID), string(e.Regarding.UID))
		out = append(out, fmt.Sprintf("%s %s/%s %s: %s", e.Type, e.Reason, e.Action, e.Related.Name, e.Note))
	}
	return out
}

// TestScoresOfAddOnsRankClusters adds, changes and expires scores that a prioritizer and
// an expression read, and checks the Events.
func TestScoresOfAddOnsRankClusters(t *testing.T) {
	f, names := newField(t, "pscore", 2)
	for _, name := range names {
		_, err := f.kube.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	f.place(
		t, "p",
		`{"numberOfClusters":1,"scoreRateLimit":"0s",
			"prioritizerPolicy":{"mode":"Exact","configurations":[{"scoreCoordinate":{"type":"AddOn","addOn":{"resourceName":"usage","scoreName":"cpu"}}}]}}`,
	)
	f.place(
		t, "cel",
		`{"predicates":[{"requiredClusterSelector":{"celSelector":{"celExpressions":[
			"managedCluster.scores(\"usage\").exists(s, s.name == \"cpu\" && s.value > 80)"]}}}]}`,
	)
	f.awaitGroups(t, "p", "0: "+names[0])
	f.awaitGroups(t, "cel", "0:")
	f.score(t, names[1], 70, "null")
	f.awaitGroups(t, "p", "0: "+names[1])
	f.score(t, names[0], 90, "null")
	f.awaitGroups(t, "p", "0: "+names[0])
	f.awaitGroups(t, "cel", "0: "+names[0])
	// From here on, only time passes.
	f.score(t, names[0], 90, fmt.Sprintf("%q", time.Now().Add(2*time.Second).UTC().Format(time.RFC3339)))
	f.awaitGroups(t, "p", "0: "+names[1])
	f.awaitGroups(t, "cel", "0:")

	// Each Event is written after what it tells, the last ones perhaps only now.
	wanted := []string{
		"Normal DecisionUpdate/DecisionUpdated p-decision-1: Decision p-decision-1 is updated with placement p in namespace pscore",
		"Normal ScoreUpdate/ScoreUpdated p-decision-1: pscore-0:0 pscore-1:70 ",
		"Normal ScoreUpdate/ScoreUpdated p-decision-1: pscore-0:90 pscore-1:70 ",
		"Warning DecisionUpdate/DecisionUpdated p-decision-1: Decision p-decision-1 is updated with placement p " +
			"in namespace pscore: AddOnPlacementScores pscore-0/usage expired",
	}
	var told []string
	soon(t, func() bool {
		told = f.eventsOf(t, "p")
		return !slices.ContainsFunc(wanted, func(text string) bool { return !slices.Contains(told, text) })
	}, "%v", &told)
	require.Equal(t, "Normal DecisionCreate/DecisionCreated p-decision-1: Decision p-decision-1 is created with placement p in namespace pscore", told[0])
}

func TestATolerationEndsByItself(t *testing.T) {
	t.Parallel()
	f, names := newField(t, "pseconds", 2)
	f.place(t, "p", `{"tolerations":[{"key":"draining","operator":"Exists","tolerationSeconds":5}]}`)
	f.place(t, "ever", `{"tolerations":[{"key":"draining","operator":"Exists"}]}`)
	f.awaitGroups(t, "p", "0: "+strings.Join(names, " "))
	require.NoError(t, patch(f.dyn, names[0], `{"spec":{"taints":[{"key":"draining","effect":"NoSelect"}]}}`))
	mc := f.await(t, names[0], "has its taint stamped", func(mc *clusterv1.ManagedCluster) bool {
		return len(mc.Spec.Taints) == 1 && mc.Spec.Taints[0].TimeAdded != nil
	})
	f.awaitGroups(t, "p", "0: "+names[1])
	require.False(t, time.Now().Before(mc.Spec.Taints[0].TimeAdded.Add(5*time.Second)), "it was tolerated for five seconds")
	require.Equal(t, []string{"0: " + strings.Join(names, " ")}, f.groups(t, "ever"))
	require.NoError(t, patch(f.dyn, names[0], `{"spec":{"taints":null}}`))
	f.awaitGroups(t, "p", "0: "+strings.Join(names, " "))
}

func TestClustersAreSpreadOverPlaces(t *testing.T) {
	f, _ := newField(t, "pspread", 0)
	for i, region := range []string{"eu", "eu", "us", ""} {
		f.join(t, fmt.Sprintf("pspread-%d", i), map[string]string{"region": region})
	}
	require.NoError(t, patch(f.dyn, "pspread-3", `{"metadata":{"labels":{"region":null}}}`))
	f.place(
		t, "hard",
		`{"spreadPolicy":{"spreadConstraints":[{"topologyKey":"region","topologyKeyType":"Label","whenUnsatisfiable":"DoNotSchedule"}]},"numberOfClusters":4}`,
	)
	f.awaitGroups(t, "hard", "0: pspread-0 pspread-1 pspread-2")
	require.Equal(t, "1 cluster decisions unscheduled", f.awaitVerdict(t, "hard", satisfiedKind, "False NotAllDecisionsScheduled"))
	f.place(
		t, "soft",
		`{"spreadPolicy":{"spreadConstraints":[{"topologyKey":"region","topologyKeyType":"Label"}]},"numberOfClusters":2,"prioritizerPolicy":{"mode":"Exact"}}`,
	)
	f.awaitGroups(t, "soft", "0: pspread-0 pspread-2")
	f.awaitVerdict(t, "soft", satisfiedKind, "True AllDecisionsScheduled")
	require.NoError(t, patch(f.dyn, "pspread-3", `{"metadata":{"labels":{"region":"asia"}}}`))
	f.awaitGroups(t, "hard", "0: pspread-0 pspread-1 pspread-2 pspread-3")
}

// TestSeveralSetsAreOneField binds, selects and removes sets with clusters by label and
// by selector.
func TestSeveralSetsAreOneField(t *testing.T) {
	f, _ := newField(t, "pfield", 0)
	join := func(set, name string, labels map[string]string) {
		f.set = set
		f.join(t, name, labels)
		f.set = "pfield"
	}
	join("pfield", "pfield-0", nil)
	join("pfield", "pfield-1", nil)
	join("pfield2", "pfield-2", map[string]string{"pfield": "v"})
	f.place(t, "p", `{"numberOfClusters":3}`)
	f.place(t, "one", `{"clusterSets":["pfield2","pfield"]}`)
	f.awaitGroups(t, "p", "0: pfield-0 pfield-1")
	f.awaitVerdict(t, "p", satisfiedKind, "False NotAllDecisionsScheduled")
	f.bind(t, "pfield2")
	f.awaitGroups(t, "p", "0: pfield-0 pfield-1 pfield-2")
	f.awaitVerdict(t, "p", satisfiedKind, "True AllDecisionsScheduled")
	f.awaitGroups(t, "one", "0: pfield-0 pfield-1 pfield-2")
	f.place(t, "one", `{"clusterSets":["pfield2"]}`)
	f.awaitGroups(t, "one", "0: pfield-2")

	set := f.dyn.Resource(clusterSets)
	require.NoError(t, set.Delete(t.Context(), "pfield2", metav1.DeleteOptions{}))
	f.awaitGroups(t, "p", "0: pfield-0 pfield-1")
	f.awaitVerdict(t, "one", satisfiedKind, "False NoIntersection")
	selecting := decoded(t, `{"apiVersion":"cluster.open-cluster-management.io/v1beta2","kind":"ManagedClusterSet","metadata":{"name":"pfield2"},
		"spec":{"clusterSelector":{"selectorType":"LabelSelector","labelSelector":{"matchLabels":{"pfield":"v"}}}}}`)
	_, err := set.Create(t.Context(), selecting, metav1.CreateOptions{})
	require.NoError(t, err)
	f.awaitGroups(t, "one", "0: pfield-2")
	require.NoError(t, patch(f.dyn, "pfield-0", `{"metadata":{"labels":{"pfield":"v"}}}`))
	f.awaitGroups(t, "one", "0: pfield-0 pfield-2")
	f.awaitGroups(t, "p", "0: pfield-0 pfield-1 pfield-2")

	require.NoError(t, f.dyn.Resource(setBindings).Namespace(f.namespace).Delete(t.Context(), "pfield2", metav1.DeleteOptions{}))
	f.awaitVerdict(t, "one", satisfiedKind, "False NoIntersection")
	f.awaitGroups(t, "p", "0: pfield-0 pfield-1")
	f.bind(t, "pfield2")
	f.awaitGroups(t, "one", "0: pfield-0 pfield-2")
}

// TestAHundredAndOneClustersAreTwoObjects has one group in two objects. The clusters
// are not accepted; the placement tolerates that.
func TestAHundredAndOneClustersAreTwoObjects(t *testing.T) {
	f, _ := newField(t, "plarge", 0)
	const count = 101
	name := func(i int) string { return fmt.Sprintf("plarge-%03d", i) }
	t.Cleanup(func() {
		for i := range count {
			_ = f.dyn.Resource(clusters).Delete(context.Background(), name(i), metav1.DeleteOptions{})
		}
	})
	var all []string
	for i := range count {
		settled(t, func() error { return f.add(name(i), nil) })
		all = append(all, name(i))
	}
	f.place(t, "p", `{"tolerations":[{"operator":"Exists"}],"numberOfClusters":101}`)
	f.awaitVerdict(t, "p", satisfiedKind, "True AllDecisionsScheduled")
	objects := f.objects(t, "p")
	require.Len(t, objects, 2)
	var got []string
	for _, d := range objects {
		require.Equal(t, "0", d.Labels[clusterv1beta1.LabelDecisionGroupIndex])
		require.LessOrEqual(t, len(d.Status.Decisions), 100)
		got = append(got, selectedIn(&d)...)
	}
	slices.Sort(got)
	require.Equal(t, all, got)
	status := f.placement(t, "p").Status
	require.EqualValues(t, count, status.NumberOfSelectedClusters)
	require.Equal(t, []clusterv1beta1.DecisionGroupStatus{{Decisions: []string{"p-decision-1", "p-decision-2"}, ClusterCount: count}}, status.DecisionGroups)
}
