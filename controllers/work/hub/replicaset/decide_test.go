// SPDX-License-Identifier: Apache-2.0

package replicaset

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kubectl-ocm/kubectl-ocm/internal/rollout"
	clusterv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1alpha1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	workv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

var now = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

func replicaSet(placements ...string) *workv1alpha1.ManifestWorkReplicaSet {
	set := &workv1alpha1.ManifestWorkReplicaSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: "apps", Name: "web", Generation: 4, Labels: map[string]string{"team": "a"},
		Finalizers: []string{workv1alpha1.FinalizerManifestWorkReplicaSet},
	}}
	for _, p := range placements {
		set.Spec.PlacementRefs = append(set.Spec.PlacementRefs, workv1alpha1.LocalPlacementReference{Name: p})
	}
	set.Spec.ManifestWorkTemplate.Workload.Manifests = []workv1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(`{"kind":"ConfigMap"}`)}}}
	return set
}

// selects is a placement that selects these clusters, in one group.
func selects(name string, clusters ...string) Placement {
	return Placement{Name: name, Found: true, Decided: true, Groups: []rollout.Group{{Clusters: clusters}}}
}

func serial(t *testing.T, p Placement, maxFailures string, soak time.Duration) Placement {
	t.Helper()
	one := intstr.FromInt32(1)
	progressive := &clusterv1alpha1.RolloutProgressive{MaxConcurrency: &one}
	progressive.MaxFailures = intstr.Parse(maxFailures)
	progressive.MinSuccessTime.Duration = soak
	var err error
	p.Strategy, err = rollout.Parse(clusterv1alpha1.RolloutStrategy{Type: clusterv1alpha1.RolloutTypeProgressive, Progressive: progressive})
	require.NoError(t, err)
	return p
}

// child has the template, and the conditions given as "Type=Status".
func child(placement, cluster string, conditions ...string) Child {
	c := Child{
		Cluster: cluster, Name: "web-1", UID: types.UID("uid-" + cluster), Placement: placement, Current: true, Generation: 7,
		Labels:  labels(replicaSet(), placement),
		Given:   3,
		Created: now.Add(-time.Hour), Changed: now.Add(-time.Minute),
	}
	for _, text := range conditions {
		kind, status, _ := strings.Cut(text, "=")
		c.Conditions = append(c.Conditions, metav1.Condition{
			Type: kind, Status: metav1.ConditionStatus(status), ObservedGeneration: 7, LastTransitionTime: metav1.NewTime(now.Add(-30 * time.Second)),
		})
	}
	return c
}

func healthy(placement, cluster string) Child {
	return child(placement, cluster, "Applied=True", "Available=True")
}

func outdated(c Child) Child {
	c.Current = false
	return c
}

// outline is what a plan does, as "apply c1/web-1 by p" and "delete c1/web-1".
func outline(p reconcile.Plan) []string {
	var out []string
	for _, a := range reconcile.Of[reconcile.Apply](p.Writes) {
		out = append(out, fmt.Sprintf("apply %s by %s", a.Object.GetNamespace(), a.Object.GetLabels()[workv1alpha1.LabelPlacementName]))
	}
	for _, d := range reconcile.Of[reconcile.Remove](p.Writes) {
		out = append(out, fmt.Sprintf("delete %s/%s", d.Namespace, d.Name))
	}
	return out
}

func reasonOf(p reconcile.Plan, kind string) string {
	c := apimeta.FindStatusCondition(p.Object.(*workv1alpha1.ManifestWorkReplicaSet).Status.Conditions, kind)
	if c == nil {
		return ""
	}
	return string(c.Status) + " " + c.Reason
}

func TestDecide(t *testing.T) {
	const verified, out, delivered = "True AsExpected", "True Complete", "True AsExpected"
	cases := map[string]struct {
		state                        State
		want                         []string
		verified, rolledOut, applied string
	}{
		"every selected cluster gets a work": {
			State{Placements: []Placement{selects("p", "c1", "c2")}},
			[]string{"apply c1 by p", "apply c2 by p"}, verified, "False Progressing", "False NotAsExpected",
		},
		"what is delivered is left alone": {
			State{Placements: []Placement{selects("p", "c1")}, Children: []Child{healthy("p", "c1")}},
			nil, verified, out, delivered,
		},
		"a work without its labels gets them back": {
			State{
				Placements: []Placement{selects("p", "c1")},
				Children:   []Child{func() Child { c := healthy("p", "c1"); c.Labels = nil; return c }()},
			},
			[]string{"apply c1 by p"}, verified, out, delivered,
		},
		"a work that is not as the template is written again": {
			State{Placements: []Placement{selects("p", "c1")}, Children: []Child{outdated(healthy("p", "c1"))}},
			[]string{"apply c1 by p"}, verified, "False Progressing", "False NotAsExpected",
		},
		"a cluster that is not selected any more loses its work, whatever its spec": {
			State{
				Placements: []Placement{selects("p", "c1")},
				Children:   []Child{healthy("p", "c1"), healthy("p", "c2"), outdated(healthy("p", "c3"))},
			},
			[]string{"delete c2/web-1", "delete c3/web-1"}, verified, out, delivered,
		},
		"works of a placement that is not referred to go": {
			State{Placements: []Placement{selects("q", "c2")}, Children: []Child{healthy("p", "c1")}},
			[]string{"apply c2 by q", "delete c1/web-1"}, verified, "False Progressing", "False NotAsExpected",
		},
		"a cluster that changes to another placement keeps its work": {
			State{Placements: []Placement{selects("q", "c1")}, Children: []Child{healthy("p", "c1")}},
			[]string{"apply c1 by q"}, verified, out, delivered,
		},
		"a cluster of two placements gets one work, by the first": {
			State{Placements: []Placement{selects("p", "c1"), selects("q", "c1", "c2")}},
			[]string{"apply c1 by p", "apply c2 by q"}, verified, "False Progressing", "False NotAsExpected",
		},
		"of two works of a cluster the one that is not current is removed": {
			State{Placements: []Placement{selects("p", "c1")}, Children: []Child{
				func() Child { c := outdated(healthy("p", "c1")); c.Name, c.UID = "old", "other"; return c }(), healthy("p", "c1"),
			}},
			[]string{"delete c1/old"}, verified, out, delivered,
		},
		"a missing placement harms neither what it delivered nor another": {
			State{Placements: []Placement{{Name: "gone"}, selects("q", "c2")}, Children: []Child{healthy("gone", "c1")}},
			[]string{"apply c2 by q"}, "False PlacementDecisionNotFound", "False Progressing", "False NotAsExpected",
		},
		"nor does one whose groups or strategy are wrong": {
			State{
				Placements: []Placement{{Name: "bad", Found: true, Decided: true, Invalid: errors.New("no index")}},
				Children:   []Child{healthy("bad", "c1")},
			},
			nil, "False NotAsExpected", "False Progressing", "False PlacementDecisionEmpty",
		},
		"nor does one that has not decided": {
			State{Placements: []Placement{{Name: "p", Found: true}}, Children: []Child{healthy("p", "c1")}},
			nil, "False PlacementDecisionEmpty", "False Progressing", "False PlacementDecisionEmpty",
		},
		"a cluster of a missing placement is not handed to the next one": {
			State{
				Placements: []Placement{{Name: "p"}, selects("q", "c1", "c2")},
				Children:   []Child{outdated(healthy("p", "c1"))},
			},
			[]string{"apply c2 by q"}, "False PlacementDecisionNotFound", "False Progressing", "False NotAsExpected",
		},
		"nor is one of a placement whose groups or strategy are wrong": {
			State{
				Placements: []Placement{
					{Name: "p", Found: true, Decided: true, Invalid: errors.New("no index")},
					selects("q", "c1", "c2"),
				},
				Children: []Child{outdated(healthy("p", "c1"))},
			},
			[]string{"apply c2 by q"}, "False NotAsExpected", "False Progressing", "False NotAsExpected",
		},
		"nor is one of a placement that has not decided": {
			State{
				Placements: []Placement{{Name: "p", Found: true}, selects("q", "c1", "c2")},
				Children:   []Child{outdated(healthy("p", "c1"))},
			},
			[]string{"apply c2 by q"}, "False PlacementDecisionEmpty", "False Progressing", "False NotAsExpected",
		},
		"a placement that comes before takes the cluster, which is its own anyway": {
			State{Placements: []Placement{selects("p", "c1"), {Name: "q"}}, Children: []Child{healthy("q", "c1")}},
			[]string{"apply c1 by p"}, "False PlacementDecisionNotFound", "False Progressing", delivered,
		},
		"a cluster of a placement that lets go of it is handed to the next one": {
			State{Placements: []Placement{selects("p"), selects("q", "c1")}, Children: []Child{healthy("p", "c1")}},
			[]string{"apply c1 by q"}, verified, out, delivered,
		},
		"a placement that selects nothing is rolled out": {
			State{Placements: []Placement{selects("p")}, Children: []Child{healthy("p", "c1")}},
			[]string{"delete c1/web-1"}, "False PlacementDecisionEmpty", out, "False PlacementDecisionEmpty",
		},
		"a work on its way out is waited for": {
			State{
				Placements: []Placement{selects("p", "c1")},
				Children:   []Child{func() Child { c := healthy("p", "c1"); c.Deleting = true; return c }()},
			},
			nil, verified, "False Progressing", "False NotAsExpected",
		},
		"one after the other: the second waits for the first": {
			State{
				Placements: []Placement{serial(t, selects("p", "c1", "c2"), "0", 0)},
				Children:   []Child{child("p", "c1"), outdated(healthy("p", "c2"))},
			},
			nil, verified, "False Progressing", "False NotAsExpected",
		},
		"one after the other: success lets the next begin": {
			State{
				Placements: []Placement{serial(t, selects("p", "c1", "c2"), "0", 0)},
				Children:   []Child{healthy("p", "c1"), outdated(healthy("p", "c2"))},
			},
			[]string{"apply c2 by p"}, verified, "False Progressing", delivered,
		},
		"one after the other: a failure stops the next": {
			State{Placements: []Placement{serial(t, selects("p", "c1", "c2"), "0", 0)}, Children: []Child{
				child("p", "c1", "Applied=True", "Available=True", "Progressing=True", "Degraded=True"),
			}},
			nil, verified, "False Progressing", "False NotAsExpected",
		},
		"progress that is reported is waited for": {
			State{
				Placements: []Placement{selects("p", "c1")},
				Children:   []Child{child("p", "c1", "Applied=True", "Available=True", "Progressing=True")},
			},
			nil, verified, "False Progressing", "False Processing",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			c.state.Set, c.state.Now = replicaSet(), now
			plan := Decide(c.state)
			require.Equal(t, c.want, outline(plan))
			require.Equal(t, c.verified, reasonOf(plan, workv1alpha1.ConditionPlacementVerified))
			require.Equal(t, c.rolledOut, reasonOf(plan, workv1alpha1.ConditionPlacementRolledOut))
			require.Equal(t, c.applied, reasonOf(plan, workv1alpha1.ConditionManifestworkApplied))

			// What was reported once is not reported again.
			again := c.state
			again.Set = plan.Object.(*workv1alpha1.ManifestWorkReplicaSet)
			again.Now = now.Add(time.Second)
			require.Equal(t, again.Set.Status, Decide(again).Object.(*workv1alpha1.ManifestWorkReplicaSet).Status)
		})
	}
}

func TestStateOfAChild(t *testing.T) {
	stale := func(c Child, kind string) Child {
		apimeta.FindStatusCondition(c.Conditions, kind).ObservedGeneration = 6
		return c
	}
	reported, changed := now.Add(-30*time.Second), now.Add(-time.Minute)
	cases := map[string]struct {
		child  Child
		status rollout.Status
		since  time.Time
	}{
		"another spec":                {outdated(healthy("p", "c")), rollout.ToApply, changed},
		"delivered, nothing reported": {child("p", "c"), rollout.Progressing, changed},
		"not applied":                 {child("p", "c", "Applied=False"), rollout.Progressing, changed},
		"applied before the change":   {stale(healthy("p", "c"), "Applied"), rollout.Progressing, changed},
		"there, no rules":             {healthy("p", "c"), rollout.Succeeded, reported},
		"not there, no rules":         {child("p", "c", "Applied=True", "Available=False"), rollout.Progressing, changed},
		"there before the change":     {stale(healthy("p", "c"), "Available"), rollout.Progressing, changed},
		"degraded, no progress":       {child("p", "c", "Applied=True", "Degraded=True"), rollout.Failed, reported},
		"degraded before the change": {
			stale(child("p", "c", "Applied=True", "Progressing=False", "Degraded=True"), "Degraded"),
			rollout.Progressing,
			changed,
		},
		"progressing": {
			child("p", "c", "Applied=True", "Progressing=True", "Degraded=False"),
			rollout.Progressing,
			reported,
		},
		"progressing unknown": {
			child("p", "c", "Applied=True", "Progressing=Unknown"),
			rollout.Progressing,
			reported,
		},
		"progressing before the change": {
			stale(child("p", "c", "Applied=True", "Progressing=False"), "Progressing"),
			rollout.Progressing,
			changed,
		},
		"progressing and degraded": {
			child("p", "c", "Applied=True", "Progressing=True", "Degraded=True"),
			rollout.Failed,
			reported,
		},
		"done": {
			child("p", "c", "Applied=True", "Progressing=False", "Degraded=False"),
			rollout.Succeeded,
			reported,
		},
		"done since before the change": {
			func() Child { c := healthy("p", "c"); c.Changed = now; return c }(),
			rollout.Succeeded,
			now,
		},
		"done, and not available has no voice": {
			child("p", "c", "Applied=True", "Available=False", "Progressing=False"),
			rollout.Succeeded,
			reported,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := c.child.state()
			require.Equal(t, c.status, got.Status)
			require.Equal(t, c.since, got.Since)
		})
	}
}

func TestDeletion(t *testing.T) {
	deleted := func(policy workv1alpha1.CascadeDeletionPolicy, children ...Child) reconcile.Plan {
		set := replicaSet("p")
		set.DeletionTimestamp = &metav1.Time{Time: now}
		set.Spec.CascadeDeletionPolicy = policy
		return Decide(State{Set: set, Placements: []Placement{selects("p", "c1", "c2")}, Children: children, Now: now})
	}
	kept := func(p reconcile.Plan) bool {
		return slices.Contains(p.Object.GetFinalizers(), workv1alpha1.FinalizerManifestWorkReplicaSet)
	}
	background := deleted(workv1alpha1.CascadeDeletionPolicyBackground, healthy("p", "c1"), healthy("gone", "c9"))
	require.Equal(t, []string{"delete c1/web-1", "delete c9/web-1"}, outline(background))
	require.False(t, kept(background))

	foreground := deleted(workv1alpha1.CascadeDeletionPolicyForeground, healthy("p", "c1"))
	require.Equal(t, []string{"delete c1/web-1"}, outline(foreground))
	require.True(t, kept(foreground))
	going := healthy("p", "c1")
	going.Deleting = true
	require.True(t, kept(deleted(workv1alpha1.CascadeDeletionPolicyForeground, going)))
	require.False(t, kept(deleted(workv1alpha1.CascadeDeletionPolicyForeground)))
}

func TestNameThatIsNoLabelIsSaid(t *testing.T) {
	set := replicaSet("p")
	set.Name = strings.Repeat("w", 60)
	set.Finalizers = nil
	plan := Decide(State{Set: set, Placements: []Placement{selects("p", "c1")}, Now: now})
	require.Empty(t, outline(plan))
	require.Equal(t, "False InvalidManifestWorkName", reasonOf(plan, workv1alpha1.ConditionManifestworkApplied))
	require.Contains(t, plan.Object.GetFinalizers(), workv1alpha1.FinalizerManifestWorkReplicaSet)
}

func TestWhatIsWritten(t *testing.T) {
	plan := Decide(State{Set: replicaSet("p"), Placements: []Placement{selects("p", "c1", "c2")}, Children: []Child{outdated(healthy("p", "c2"))}, Now: now})
	require.Len(t, reconcile.Of[reconcile.Apply](plan.Writes), 2)
	applies := reconcile.Of[reconcile.Apply](plan.Writes)
	made, changed := applies[0].Object.(*workv1.ManifestWork), applies[1].Object.(*workv1.ManifestWork)
	require.Equal(t, nameOf(reconcile.Key{Namespace: "apps", Name: "web"}), made.Name)
	require.Equal(t, "web-1", changed.Name, "one that exists keeps its name")
	require.NotEqual(t,
		made.Name, nameOf(reconcile.Key{Namespace: "other", Name: "web"}),
		"two replica sets of one name do not share works")
	require.Equal(t, map[string]string{
		"team": "a", workv1alpha1.LabelManifestWorkReplicaSet: "apps.web", workv1alpha1.LabelPlacementName: "p",
	}, made.Labels)
	require.Equal(t, replicaSet().Spec.ManifestWorkTemplate, made.Spec)
}

func TestSummary(t *testing.T) {
	plan := Decide(State{
		Set: replicaSet("p", "q"), Now: now,
		Placements: []Placement{selects("p", "c1", "c2", "c3"), selects("q", "c3", "c4")},
		Children: []Child{
			healthy("p", "c1"), child("p", "c2", "Applied=True", "Progressing=True", "Degraded=True"), outdated(healthy("q", "c4")),
		},
	})
	status := plan.Object.(*workv1alpha1.ManifestWorkReplicaSet).Status
	require.Equal(t, workv1alpha1.ManifestWorkReplicaSetSummary{
		Total: 2, Applied: 2, Available: 1, Progressing: 1, Degraded: 1,
	}, status.Summary, "desiredTotal and updated stay unset on the wire")
	done, selected := status.RolledOut()
	require.Equal(t, []int{1, 4}, []int{done, selected}, "a condition says it instead")
	waiting, late := status.Turns()
	require.Equal(t, []int{0, 1}, []int{waiting, late}, "and who waits, and who is late")
	for _, p := range status.PlacementSummary {
		require.Zero(t, p.Summary.DesiredTotal+p.Summary.Updated)
	}
	require.Equal(t, "1 (2 / 3 clusters applied)", status.PlacementSummary[0].AvailableDecisionGroups)
	require.Equal(t, "1 (1 / 1 clusters applied)", status.PlacementSummary[1].AvailableDecisionGroups)
}

func TestWhatIsKeptOfAChild(t *testing.T) {
	u := &unstructured.Unstructured{}
	require.NoError(t, u.UnmarshalJSON([]byte(`{"apiVersion":"work.open-cluster-management.io/v1","kind":"ManifestWork","metadata":{
		"namespace":"c1","name":"web","generation":3,"creationTimestamp":"2026-08-01T12:00:00Z",
		"labels":{"work.open-cluster-management.io/manifestworkreplicaset":"apps.web"},"annotations":{"big":"xxx"},
		"managedFields":[{"manager":"ocm.work.replicaset","time":"2026-08-01T12:01:00Z"},
			{"manager":"work-agent","time":"2026-08-01T13:00:00Z"},{"manager":"ocm.work.replicaset","subresource":"status","time":"2026-08-01T13:00:00Z"}]},
		"spec":{"workload":{"manifests":[{"kind":"ConfigMap","apiVersion":"v1","data":{"b":"2","a":"1"}}]}},
		"status":{"conditions":[{"type":"Applied","status":"True","message":"long"}]}}`)))
	got, ok := keep(u)
	require.True(t, ok)
	var same workv1.ManifestWorkSpec
	require.NoError(t, json.Unmarshal([]byte(`{"workload":{"manifests":[{ "data": {"a": "1", "b": "2"}, "apiVersion":"v1", "kind": "ConfigMap" }]}}`), &same))
	template, err := hashOf(same)
	require.NoError(t, err)
	require.Equal(t, template, got.hash, "what means the same is the same")
	require.Equal(t, reconcile.Key{Namespace: "apps", Name: "web"}, got.owner)
	require.Equal(t, now.Add(time.Minute), got.child.Changed.UTC(), "only what this loop wrote counts")
	require.Equal(t, int64(3), got.child.Generation)
	require.True(t, apimeta.IsStatusConditionTrue(got.child.Conditions, "Applied"))
	require.Empty(t, got.child.Conditions[0].Message)

	u.SetLabels(nil)
	_, ok = keep(u)
	require.False(t, ok, "without the label it belongs to no replica set")
}

func TestOwnerOfAChild(t *testing.T) {
	key, ok := owner(label(reconcile.Key{Namespace: "apps", Name: "web.v2"}))
	require.True(t, ok)
	require.Equal(t, reconcile.Key{Namespace: "apps", Name: "web.v2"}, key, "a name may have dots")
	for _, bad := range []string{"", "apps", ".web", "apps."} {
		_, ok := owner(bad)
		require.False(t, ok, bad)
	}
}

func TestUsersOfAPlacement(t *testing.T) {
	var u users
	key := func(name string) reconcile.Key { return reconcile.Key{Namespace: "apps", Name: name} }
	first, second := replicaSet("p", "q"), replicaSet("p")
	second.Name = "api"
	u.changed(nil, first)
	u.changed(nil, second)
	require.Equal(t, []reconcile.Key{key("api"), key("web")}, u.of(key("p")))
	require.Equal(t, []reconcile.Key{key("web")}, u.of(key("q")))
	require.Empty(t, u.of(reconcile.Key{Namespace: "other", Name: "p"}), "placements of another namespace are others")

	u.changed(first, replicaSet("r"))
	require.Equal(t, []reconcile.Key{key("api")}, u.of(key("p")))
	require.Empty(t, u.of(key("q")))
	require.Equal(t, []reconcile.Key{key("web")}, u.of(key("r")))
	u.changed(second, nil)
	require.Empty(t, u.of(key("p")))
	require.Len(t, u.byPlacement, 1, "a placement without references is forgotten")
}

func TestAClusterThatIsBeingDeletedGetsNoNewWork(t *testing.T) {
	s := State{Set: replicaSet("p"), Now: now, Placements: []Placement{selects("p", "c1", "c2")}, Leaving: map[string]bool{"c2": true}}
	plan := Decide(s)
	require.Len(t, reconcile.Of[reconcile.Apply](plan.Writes), 1)
	require.Equal(t, "c1", reconcile.Of[reconcile.Apply](plan.Writes)[0].Object.GetNamespace())
}
