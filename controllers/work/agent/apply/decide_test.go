// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent/drift"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent/executor"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent/status"
	"github.com/kubectl-ocm/kubectl-ocm/internal/apply"
	"github.com/kubectl-ocm/kubectl-ocm/internal/discovery"
	"github.com/kubectl-ocm/kubectl-ocm/internal/manifest"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

var (
	now  = time.Unix(1_800_000_000, 0)
	maps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
)

// configMap is a resolved manifest of a ConfigMap n/name.
func configMap(name string) Manifest {
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "namespace": "n"},
	}}
	return Manifest{
		Raw: []byte(name), Object: u, Mapping: discovery.Mapping{Resource: maps, Namespaced: true},
		Head:    workv1.ManifestResourceMeta{Version: "v1", Kind: "ConfigMap", Namespace: "n", Name: name},
		Options: apply.Options{Strategy: workv1.UpdateStrategyTypeUpdate, Manager: "work-agent", Force: true, Owned: true},
	}
}

// seen is a live object that our manager applied and the work "u" owns.
func seen(version, applied string) apply.Seen {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetUID("o")
	u.SetResourceVersion(version)
	u.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "work.open-cluster-management.io/v1", Kind: "AppliedManifestWork", UID: "u"}})
	u.SetManagedFields([]metav1.ManagedFieldsEntry{{
		Manager: "work-agent", Operation: "Apply", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:data":{"f:` + applied + `":{}}}`),
	}})
	return apply.See(u)
}

// before is the memory that an earlier pass left of the manifest.
func before(m Manifest, change func(*Item)) *Item {
	item := Item{
		ID: apply.IDOf(maps, "n", m.Object.GetName()), Resource: maps, Phase: kept, Options: m.Options, Intent: intentOf(m),
		Result: apply.Result{Seen: seen("100", "a")}, Looked: now.Add(-time.Hour),
		Outcome: status.Outcome{Applied: status.Applied(""), Available: status.Exists(true), Feedback: status.NoFeedback()},
	}
	if change != nil {
		change(&item)
	}
	return &item
}

func state(manifests ...Manifest) State {
	return State{
		Now: now, Adopted: true, Manifests: manifests,
		Work: &workv1.ManifestWork{
			ObjectMeta: metav1.ObjectMeta{Name: "web", Finalizers: []string{workv1.FinalizerManifestWork}},
		},
		Applied: &workv1.AppliedManifestWork{ObjectMeta: metav1.ObjectMeta{Name: "h-web", UID: "u"}},
	}
}

func TestDecideAsksAnExecutorsRightsAnewWhenTheyChanged(t *testing.T) {
	robot := executor.Account{Namespace: "n", Name: "robot"}
	of := func(change func(*Item)) func(*Item) {
		return func(i *Item) {
			i.Executor, i.Rights, i.Granted = robot, 7, true
			if change != nil {
				change(i)
			}
		}
	}
	denied := func(ago time.Duration) func(*Item) {
		return of(func(i *Item) { i.Phase, i.Granted, i.Looked = denied, false, now.Add(-ago) })
	}
	drifted := view{seen: seen("101", "b"), sight: drift.Present, rights: 7}
	for name, tc := range map[string]struct {
		remembered func(*Item)
		executor   executor.Account
		shown      view
		look       bool
		wait       time.Duration
	}{
		"nothing changed": {
			remembered: of(nil),
			executor:   robot,
			shown:      view{seen: seen("100", "a"), sight: drift.Present, rights: 7},
		},
		"rights changed": {
			remembered: of(nil),
			executor:   robot,
			shown:      view{seen: seen("100", "a"), sight: drift.Present, rights: 8},
			look:       true,
		},
		"rights are no longer watched": {
			remembered: of(nil),
			executor:   robot,
			shown:      view{seen: seen("100", "a"), sight: drift.Present},
			look:       true,
		},
		"rights changed after a fault": {
			remembered: of(func(i *Item) { i.Phase, i.Fails, i.Next = failing, 3, now.Add(time.Hour) }),
			executor:   robot,
			shown:      view{rights: 8},
			look:       true,
		},
		"denied a moment ago": {
			remembered: denied(time.Second),
			executor:   robot,
			shown:      drifted,
			wait:       59 * time.Second,
		},
		"denied a minute ago":        {remembered: denied(time.Minute), executor: robot, shown: drifted, look: true},
		"denied, and rights changed": {remembered: denied(time.Second), executor: robot, shown: view{rights: 8}, look: true},
		"another executor": {
			remembered: of(nil),
			executor:   executor.Account{Namespace: "n", Name: "other"},
			shown:      view{seen: seen("100", "a"), sight: drift.Present, rights: 7},
			look:       true,
		},
		"the executor was taken away": {
			remembered: of(nil),
			shown:      view{seen: seen("100", "a"), sight: drift.Present, rights: 7},
			look:       true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := configMap("one")
			m.Before, m.Shown = before(m, tc.remembered), tc.shown
			s := state(m)
			s.Executor = tc.executor
			p := Decide(s)
			require.Equal(t, tc.look, p.Tasks[0].Action.looks())
			require.Equal(t, tc.wait, p.RequeueAfter)
			require.Equal(t, tc.executor, p.Tasks[0].Executor)
			if tc.executor != robot {
				require.False(t, p.Tasks[0].Granted, "rights of one executor are not those of another")
			}
		})
	}
}

func TestDecidePreparesTheBookkeeping(t *testing.T) {
	s := state()
	require.Equal(t, Plan{}, Decide(s))
	s.Work.Finalizers, s.Adopted = nil, false
	p := Decide(s)
	require.True(t, p.Hold)
	require.True(t, p.Adopt)
	s.Applied = nil
	p = Decide(s)
	require.True(t, p.Create)
	require.False(t, p.Adopt)
}

func TestDecideLooksOnlyWhereSomethingMayHaveChanged(t *testing.T) {
	present := func(s apply.Seen) view { return view{seen: s, sight: drift.Present} }
	deleting := seen("101", "a")
	deleting.Deleting = true
	for name, tc := range map[string]struct {
		remembered func(*Item)
		fresh      bool
		shown      view
		look       bool
		wait       time.Duration
		repair     bool
	}{
		"a new manifest":                          {fresh: true, look: true},
		"the watch has not listed yet":            {shown: view{sight: drift.Unknown}},
		"the object is as it was left":            {shown: present(seen("100", "a"))},
		"others changed fields that are not ours": {shown: present(seen("101", "a"))},
		"others changed fields that are ours":     {shown: present(seen("101", "b")), look: true, repair: true},
		"the watch lags behind our write":         {shown: present(seen("99", "b"))},
		"the object is being deleted":             {shown: present(deleting), look: true, repair: true},
		"the object is gone":                      {shown: view{sight: drift.Absent}, look: true, repair: true},
		"it was looked at a moment ago": {
			remembered: func(i *Item) { i.Looked = now.Add(-100 * time.Millisecond) },
			shown:      view{sight: drift.Absent},
			wait:       400 * time.Millisecond,
		},
		"it is repaired all the time": {
			remembered: func(i *Item) { i.Looked, i.Repairs = now.Add(-4*time.Second), 5 },
			shown:      present(seen("101", "b")),
			wait:       6 * time.Second,
		},
		"it was repaired all the time, and is left alone": {
			remembered: func(i *Item) { i.Looked, i.Repairs = now.Add(-40*time.Second), 5 },
			shown:      present(seen("100", "a")),
			wait:       20 * time.Second,
		},
		"it was left alone for a minute": {
			remembered: func(i *Item) { i.Looked, i.Repairs = now.Add(-time.Minute), 5 },
			shown:      present(seen("100", "a")),
			look:       true,
			repair:     true,
		},
		"it was repaired all the time, long ago": {
			remembered: func(i *Item) { i.Repairs = 5 },
			shown:      present(seen("101", "b")),
			look:       true,
			repair:     true,
		},
		"it never existed and still does not": {
			remembered: func(i *Item) { i.Result = apply.Result{} },
			shown:      view{sight: drift.Absent},
		},
		"it never existed and now does": {
			remembered: func(i *Item) { i.Result = apply.Result{} },
			shown:      present(seen("101", "a")),
			look:       true,
			repair:     true,
		},
		"it may not be watched and was looked at": {
			remembered: func(i *Item) { i.Looked = now.Add(-time.Second) },
			shown:      view{sight: drift.Blind},
		},
		"it may not be watched for a minute": {shown: view{sight: drift.Blind}, look: true, repair: true},
		"it may not be watched and the look took long": {
			remembered: func(i *Item) { i.Looked = now.Add(-drift.PollEvery + 100*time.Millisecond) },
			shown:      view{sight: drift.Blind},
			look:       true,
			repair:     true,
		},
		"the last try failed a moment ago": {
			remembered: func(i *Item) { i.Phase, i.Fails, i.Next = failing, 1, now.Add(time.Second) },
			shown:      view{sight: drift.Absent},
			wait:       time.Second,
		},
		"the next try is due": {remembered: func(i *Item) { i.Phase, i.Fails, i.Next = failing, 1, now }, look: true},
		"others hold its fields": {
			remembered: func(i *Item) { i.Phase, i.Looked = blocked, now.Add(-time.Minute) },
			shown:      present(seen("100", "a")),
			wait:       4 * time.Minute,
		},
		"others hold its fields, but it changed": {
			remembered: func(i *Item) { i.Phase, i.Looked = blocked, now.Add(-time.Minute) },
			shown:      present(seen("101", "a")),
			look:       true,
		},
		"others hold its fields, and the watch lags": {
			remembered: func(i *Item) { i.Phase, i.Looked = blocked, now.Add(-time.Minute) },
			shown:      present(seen("99", "a")),
			wait:       4 * time.Minute,
		},
		"others have held its fields for five minutes": {
			remembered: func(i *Item) { i.Phase = blocked },
			shown:      present(seen("100", "a")),
			look:       true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := configMap("a")
			if !tc.fresh {
				m.Before, m.Shown = before(m, tc.remembered), tc.shown
			}
			p := Decide(state(m))
			require.Equal(t, tc.look, p.Tasks[0].Action.looks())
			require.Equal(t, tc.look, p.Tasks[0].Action.writes())
			require.Equal(t, tc.repair, p.Tasks[0].Action == repair)
			require.Equal(t, tc.wait, p.RequeueAfter)
		})
	}
}

func TestDecideTakesAnotherIntentForANewManifest(t *testing.T) {
	for name, change := range map[string]func(*Manifest){
		"other content":   func(m *Manifest) { m.Raw = []byte("other") },
		"other options":   func(m *Manifest) { m.Options.Owned = false },
		"another rival":   func(m *Manifest) { m.Rival = "older" },
		"another refusal": func(m *Manifest) { m.Refusal = errors.New("no") },
		"another version": func(m *Manifest) { m.Mapping.Resource.Version = "v2" },
	} {
		t.Run(name, func(t *testing.T) {
			m := configMap("a")
			m.Before, m.Shown = before(m, nil), view{seen: seen("100", "a"), sight: drift.Present}
			change(&m)
			task := Decide(state(m)).Tasks[0]
			require.True(t, task.Action.looks())
			require.Equal(t, m.Refusal == nil, task.Action.writes())
			require.NotEqual(t, repair, task.Action)
		})
	}
}

func TestDecideKeepsWhatIsBrokenApart(t *testing.T) {
	nameless := Manifest{Raw: []byte("x"), Err: errors.New("no name")}
	kindless := Manifest{
		Raw: []byte("y"), Object: configMap("y").Object, Head: workv1.ManifestResourceMeta{Kind: "Widget", Name: "y"},
		MapErr: &discovery.UnknownKindError{Kind: schema.GroupVersionKind{Version: "v1", Kind: "Widget"}},
	}
	p := Decide(state(nameless, kindless, configMap("a")))
	require.Equal(t, "Failed to apply manifest: no name", p.Tasks[0].Outcome.Applied.Message)
	require.Equal(t, status.Unnamed(), p.Tasks[0].Outcome.Available)
	require.Equal(t, manifest.RankBroken, p.Tasks[0].Rank)
	require.Zero(t, p.Tasks[0].Fails, "only an edit can help")
	require.Equal(t, unknown, p.Tasks[1].Phase)
	require.Equal(t, int32(1), p.Tasks[1].Meta.Ordinal)
	require.Equal(t, 1, p.Tasks[1].Fails)
	require.Equal(t, firstRetry, p.RequeueAfter)
	require.True(t, p.Tasks[2].Action.writes())

	kindless.Before = &Item{Fails: 3, Next: now.Add(time.Second), Phase: unknown}
	p = Decide(state(kindless))
	require.Equal(t, 3, p.Tasks[0].Fails, "a pass before its time is no try")
	require.Equal(t, time.Second, p.RequeueAfter)
}

func TestDecideRefusesAnObjectThatStandsTwice(t *testing.T) {
	p := Decide(state(configMap("a"), configMap("a")))
	require.True(t, p.Tasks[0].Action.writes())
	require.False(t, p.Tasks[1].Action.writes())
	require.EqualError(t,
		p.Tasks[1].Refusal, "configmaps n/a is declared twice in the work; remove one of the two manifests")
}

func recorded(name string) workv1.AppliedManifestResourceMeta {
	return workv1.AppliedManifestResourceMeta{Version: "v1", Resource: "configmaps", Namespace: "n", Name: name, UID: "x"}
}

func TestDecidePrunesWhatIsDeclaredNoMore(t *testing.T) {
	broken := Manifest{Raw: []byte("x"), Err: errors.New("no"), Head: workv1.ManifestResourceMeta{Kind: "ConfigMap", Namespace: "n", Name: "broken"}}
	s := state(configMap("kept"), broken)
	s.Applied.Status.AppliedResources = []workv1.AppliedManifestResourceMeta{recorded("broken"), recorded("gone"), recorded("kept"), recorded("orphan")}
	s.Work.Spec.DeleteOption = &workv1.DeleteOption{
		PropagationPolicy: workv1.DeletePropagationPolicyTypeSelectivelyOrphan,
		SelectivelyOrphans: &workv1.SelectivelyOrphans{
			OrphaningRules: []workv1.OrphaningRule{{Resource: "configmaps", Namespace: "n", Name: "orphan"}},
		},
	}
	p := Decide(s)
	require.Equal(t, []apply.Removal{
		{Recorded: recorded("gone"), Owner: apply.OwnerOf(s.Applied)},
		{Recorded: recorded("orphan"), Owner: apply.OwnerOf(s.Applied), Keep: true},
	}, p.Remove)

	s.Owed = []workv1.AppliedManifestResourceMeta{recorded("gone"), recorded("kept"), recorded("owed")}
	require.Len(t, Decide(s).Remove, 3, "owed objects are removed like recorded ones, once")
	s.Owed = nil

	s.Removed = now.Add(-200 * time.Millisecond)
	p = Decide(s)
	require.Empty(t, p.Remove)
	require.Len(t, p.Pending, 2)
	require.Equal(t, 300*time.Millisecond, p.RequeueAfter)
}

func TestTheRecordHoldsEverythingBeforeItIsWritten(t *testing.T) {
	s := state(configMap("new"), configMap("known"), Manifest{
		Raw:  []byte("x"),
		Err:  errors.New("no"),
		Head: workv1.ManifestResourceMeta{Namespace: "n", Name: "broken"},
	})
	was := []workv1.AppliedManifestResourceMeta{recorded("broken"), recorded("known"), recorded("going")}
	tasks := Decide(s).Tasks
	tasks[1].Action = leave
	list := resources(tasks, was, []workv1.AppliedManifestResourceMeta{recorded("going")}, s.Manifests)
	blank := recorded("new")
	blank.UID = ""
	require.Equal(t,
		[]workv1.AppliedManifestResourceMeta{recorded("broken"), recorded("going"), recorded("known"), blank}, list)
	tasks[1].Result.Seen.UID = "remembered"
	require.Equal(t,
		recorded("known"), resources(tasks, was, nil, s.Manifests)[1], "an object that was not read stays as recorded")
	require.Equal(t, types.UID("remembered"), resources(tasks, nil, nil, s.Manifests)[0].UID)
	tasks[1].Result.Seen.UID, tasks[1].Action = "", look
	require.Empty(t,
		resources(tasks, was, nil, s.Manifests)[1].UID, "an object that was looked for and not found has no identity")
}

func TestFailuresAreTriedLessAndLessOften(t *testing.T) {
	var i Item
	var waits []time.Duration
	for range 15 {
		i.recordFailure(now, 0)
		waits = append(waits, i.Next.Sub(now))
	}
	require.Equal(t, firstRetry, waits[0])
	require.Equal(t, 2*firstRetry, waits[1])
	require.Equal(t, lastRetry, waits[14])
	require.IsIncreasing(t, waits[:13])
}

// The record is in the order of group, version, resource,
// namespace and name, whatever the order of the manifests.
func TestTheRecordIsSorted(t *testing.T) {
	task := func(group, version, resource, namespace, name string) Task {
		gvr := schema.GroupVersionResource{Group: group, Version: version, Resource: resource}
		return Task{Item: Item{Resource: gvr, ID: apply.IDOf(gvr, namespace, name)}}
	}
	sorted := []Task{
		task("", "v1", "configmaps", "a", "z"), task("", "v1", "configmaps", "b", "a"), task("", "v1", "configmaps", "b", "b"),
		task("", "v1", "secrets", "a", "a"), task("apps", "v1", "deployments", "a", "a"), task("apps", "v1beta1", "daemonsets", "a", "a"),
	}
	want := resources(sorted, nil, nil, nil)
	mixed := []Task{sorted[4], sorted[2], sorted[5], sorted[0], sorted[3], sorted[1]}
	require.Equal(t, want, resources(mixed, nil, nil, nil))
	require.Equal(t,
		"apps/v1beta1/daemonsets/a/a",
		strings.Join([]string{want[5].Group, want[5].Version, want[5].Resource, want[5].Namespace, want[5].Name}, "/"))
	for i := range sorted {
		require.Equal(t, sorted[i].ID, apply.RecordedID(want[i]))
	}
}
