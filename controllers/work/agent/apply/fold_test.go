// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent/drift"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent/status"
	"github.com/kubectl-ocm/kubectl-ocm/internal/apply"
	"github.com/kubectl-ocm/kubectl-ocm/internal/digest"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

// applied is a record of n plain items, in a different order than the list of resources.
func applied(n int) (*record, *workv1.AppliedManifestWork) {
	a := &workv1.AppliedManifestWork{}
	r := &record{settled: true, began: now.Add(-time.Hour)}
	gvr := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	for i := range n {
		recorded := workv1.AppliedManifestResourceMeta{Version: "v1", Resource: "configmaps", Namespace: "n", Name: fmt.Sprint("m", i)}
		item := plain(recorded, apply.Options{Strategy: "Update", Manager: "work-agent", Owned: true}, digest.Sum{byte(i)}, seen("100", "a"), now)
		item.Meta = workv1.ManifestResourceMeta{Ordinal: int32(n - i), Kind: "ConfigMap", Name: recorded.Name} //nolint:gosec // few
		item.Resource = gvr
		a.Status.AppliedResources = append(a.Status.AppliedResources, recorded)
		r.items = append([]Item{item}, r.items...)
	}
	r.resources = sumOf(a.Status.AppliedResources)
	return r, a
}

func TestFoldedItemsComeBackAsTheyWere(t *testing.T) {
	r, a := applied(3)
	r.items[1].Repairs = 3
	before := seal(r.each(a))
	want := map[apply.ID]Item{}
	for _, i := range r.items {
		want[i.ID] = i.unplaced()
	}
	require.True(t, r.fold(a))
	require.Empty(t, r.items)
	require.Len(t, slices.Collect(r.each(a)), 3)
	r.unfold(a)
	require.Empty(t, r.folded)
	require.Len(t, r.items, 3)
	for _, i := range r.items {
		require.Equal(t, want[i.ID], i)
	}
	require.NotEqual(t, before, seal(r.each(a)), "the order counts, which is that of the record")
	r.unfold(nil)
	require.Len(t, r.items, 3, "items that are not folded need no list")
}

func TestFoldedItemsAreForgottenWithTheListThatNamesThem(t *testing.T) {
	for name, change := range map[string]func(*workv1.AppliedManifestWork) *workv1.AppliedManifestWork{
		"it is gone": func(*workv1.AppliedManifestWork) *workv1.AppliedManifestWork { return nil },
		"it is shorter": func(a *workv1.AppliedManifestWork) *workv1.AppliedManifestWork {
			a.Status.AppliedResources = a.Status.AppliedResources[1:]
			return a
		},
		"it names another object": func(a *workv1.AppliedManifestWork) *workv1.AppliedManifestWork {
			a.Status.AppliedResources[1].UID = "other"
			return a
		},
	} {
		r, a := applied(3)
		require.True(t, r.fold(a), name)
		r.unfold(change(a))
		require.Empty(t, r.items, name)
		require.Empty(t, r.folded, name)
	}
}

func TestWhatIsSpecialIsKeptAsItIs(t *testing.T) {
	for name, change := range map[string]func(*record, *workv1.AppliedManifestWork){
		"nothing there":   func(r *record, _ *workv1.AppliedManifestWork) { r.items = nil },
		"not settled":     func(r *record, _ *workv1.AppliedManifestWork) { r.settled = false },
		"a failure":       func(r *record, _ *workv1.AppliedManifestWork) { r.items[1].Phase, r.items[1].Fails = failing, 1 },
		"it waits":        func(r *record, _ *workv1.AppliedManifestWork) { r.items[1].Phase = blocked },
		"a message":       func(r *record, _ *workv1.AppliedManifestWork) { r.items[1].Outcome.Applied = status.Applied("note") },
		"it is not there": func(r *record, _ *workv1.AppliedManifestWork) { r.items[1].Outcome.Available = status.Exists(false) },
		"rules":           func(r *record, _ *workv1.AppliedManifestWork) { r.items[1].Reading.asked = digest.Sum{1} },
		"an executor":     func(r *record, _ *workv1.AppliedManifestWork) { r.items[1].Granted = true },
		"a merge":         func(r *record, _ *workv1.AppliedManifestWork) { r.items[1].Result.Merged = "x" },
		"other options":   func(r *record, _ *workv1.AppliedManifestWork) { r.items[1].Options.Force = true },
		"more is recorded": func(_ *record, a *workv1.AppliedManifestWork) {
			a.Status.AppliedResources = append(a.Status.AppliedResources, a.Status.AppliedResources[0])
		},
		"another one recorded":  func(_ *record, a *workv1.AppliedManifestWork) { a.Status.AppliedResources[1].Name = "x" },
		"one is declared twice": func(r *record, _ *workv1.AppliedManifestWork) { r.items[1] = r.items[0] },
	} {
		r, a := applied(3)
		change(r, a)
		items := slices.Clone(r.items)
		require.False(t, r.fold(a), name)
		require.Equal(t, items, r.items, name)
		require.Empty(t, r.folded, name)
	}
}

func TestASealTellsWhatWasApplied(t *testing.T) {
	sealed := func(change func(*record)) string {
		r, a := applied(3)
		change(r)
		return seal(r.each(a))
	}
	want := sealed(func(*record) {})
	require.Equal(t, want, sealed(func(*record) {}))
	for name, change := range map[string]func(*record){
		"the intent":   func(r *record) { r.items[1].Intent = digest.Sum{9} },
		"the fields":   func(r *record) { r.items[1].Result.Seen = seen("100", "b") },
		"the identity": func(r *record) { r.items[1].Result.Seen.UID = "other" },
		"the name":     func(r *record) { r.items[1].ID.Name = "other" },
		"their number": func(r *record) { r.items = r.items[1:] },
	} {
		require.NotEqual(t, want, sealed(change), name)
	}
	newer := func(r *record) { r.items[1].Result.Seen.Version = "200" }
	require.Equal(t, want, sealed(newer), "a version that others made is no drift")
}

// shows is a watch that shows one state of every object.
type shows apply.Seen

func (shows) Track(string, []drift.Object) {}
func (shows) Wait(string, bool)            {}
func (s shows) Look(schema.GroupVersionResource, string, string) (apply.Seen, drift.Sight) {
	return apply.Seen(s), drift.Present
}

func TestWhatIsOwnedOtherwiseIsNotTakenAsItWasLeft(t *testing.T) {
	leaving := &unstructured.Unstructured{Object: map[string]any{}}
	leaving.SetUID("o")
	leaving.SetResourceVersion("101")
	leaving.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "work.open-cluster-management.io/v1", Kind: "AppliedManifestWork", UID: "u"}})
	leaving.SetDeletionTimestamp(&metav1.Time{Time: now})
	create, read := workv1.UpdateStrategyTypeCreateOnly, workv1.UpdateStrategyTypeReadOnly
	for name, tc := range map[string]struct {
		strategy workv1.UpdateStrategyType
		owned    bool
		seen     apply.Seen
		restored bool
	}{
		"as it was left":                 {create, true, seen("101", "a"), true},
		"its owner was taken":            {create, true, disowned(), false},
		"it is on its way out":           {create, true, apply.See(leaving), false},
		"without an owner, as it shall":  {create, false, disowned(), true},
		"it got an owner":                {create, false, seen("101", "a"), false},
		"what is only read has no owner": {read, true, disowned(), true},
		"what is only read may be going": {read, true, apply.See(leaving), true},
	} {
		m := configMap("one")
		m.Options = apply.Options{Strategy: tc.strategy, Manager: "work-agent", Owned: tc.owned}
		s := state(m)
		s.Applied.Status.AppliedResources = []workv1.AppliedManifestResourceMeta{{Version: "v1", Resource: "configmaps", Namespace: "n", Name: "one"}}
		left := plain(s.Applied.Status.AppliedResources[0], m.Options, intentOf(m), tc.seen, now)
		s.Applied.Annotations = map[string]string{workv1.AnnotationAppliedDigest: seal(slices.Values([]Item{left}))}
		c := New(Config{Watcher: shows(tc.seen)})
		require.True(t, c.restore(&s, &record{}), name)
		require.Equal(t, tc.restored, s.Manifests[0].Before != nil, name)
	}
}
