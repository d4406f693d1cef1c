// SPDX-License-Identifier: Apache-2.0

package finalize

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

var now = time.Unix(1_800_000_000, 0)

func work(deleting, held, told bool) *workv1.ManifestWork {
	w := &workv1.ManifestWork{}
	if deleting {
		w.DeletionTimestamp = &metav1.Time{Time: now}
	}
	if held {
		w.Finalizers = []string{"theirs", workv1.FinalizerManifestWork}
	}
	if told {
		w.Status.Conditions = []metav1.Condition{{Type: "Deleting", Status: "True"}}
	}
	return w
}

func applied(deleting, held bool, missedFor time.Duration) *workv1.AppliedManifestWork {
	a := &workv1.AppliedManifestWork{}
	if deleting {
		a.DeletionTimestamp = &metav1.Time{Time: now}
	}
	if held {
		a.Finalizers = []string{workv1.FinalizerAppliedManifestWork}
	}
	if missedFor != 0 {
		a.Status.EvictionStartTime = &metav1.Time{Time: now.Add(-missedFor)}
	}
	return a
}

func holding(a *workv1.AppliedManifestWork) *workv1.AppliedManifestWork {
	a.Status.AppliedResources = []workv1.AppliedManifestResourceMeta{{Version: "v1", Resource: "configmaps", Name: "web", UID: "u1"}}
	return a
}

// unmade records the objects as missing.
func unmade(a *workv1.AppliedManifestWork) *workv1.AppliedManifestWork {
	a.Status.AppliedResources[0].UID = ""
	a.Status.AppliedResources[0].Name = "other"
	return a
}

func TestDecideNamesTheNextStep(t *testing.T) {
	const grace = time.Hour
	for name, tc := range map[string]struct {
		state State
		want  Step
		wait  time.Duration
	}{
		"half of the works may be missed": {
			State{Now: now, Grace: grace, Applied: applied(false, true, 2*grace), Missed: 5, Known: 10},
			Evict,
			0,
		},
		"few works may be missed": {
			State{Now: now, Grace: grace, Applied: applied(false, true, 2*grace), Missed: 4, Known: 4},
			Evict,
			0,
		},
		"too many missed works are kept": {
			State{Now: now, Grace: grace, Applied: applied(false, true, 2*grace), Missed: 6, Known: 10},
			Hold,
			0,
		},
		"the grace is over before works are held": {
			State{Now: now, Grace: grace, Applied: applied(false, true, grace/2), Missed: 6, Known: 10},
			Rest,
			grace / 2,
		},
		"after a hold the grace restarts": {
			State{
				Now:     now,
				Grace:   grace,
				Applied: applied(false, true, 2*grace),
				Missed:  2,
				Known:   10,
				Held:    now.Add(-grace / 4),
			},
			Rest,
			3 * grace / 4,
		},
		"and ends": {
			State{Now: now, Grace: grace, Applied: applied(false, true, 2*grace), Missed: 2, Known: 10, Held: now.Add(-grace)},
			Evict,
			0,
		},
		"a confirmed one is removed among many": {
			State{Now: now, Grace: grace, Applied: applied(true, true, 2*grace), Missed: 6, Known: 10},
			Empty,
			0,
		},
		"nothing is left": {State{}, Rest, 0},
		"the counterpart of a deleted work is deleted": {
			State{Work: work(true, true, false), Applied: applied(false, true, 0)},
			Delete,
			0,
		},
		"then its objects go": {
			State{Work: work(true, true, false), Applied: applied(true, true, 0)},
			Empty,
			0,
		},
		"also if the work said before that they wait": {
			State{Work: work(true, true, true), Applied: applied(true, true, 0)},
			Empty,
			0,
		},
		"without our finalizer the rest is waited for": {
			State{Work: work(true, true, true), Applied: applied(true, false, 0)},
			Rest,
			0,
		},
		"at last the work is released":              {State{Work: work(true, true, true)}, Release, 0},
		"a work that was never applied is released": {State{Work: work(true, true, false)}, Release, 0},
		"a work that we do not hold is left alone": {
			State{Work: work(true, false, false), Applied: applied(false, true, 0)},
			Rest,
			0,
		},
		"a counterpart deleted by hand is emptied": {
			State{Work: work(false, true, false), Applied: applied(true, true, 0)},
			Empty,
			0,
		},
		"also when the work is gone":     {State{Applied: applied(true, true, 0)}, Empty, 0},
		"another agent's is not touched": {State{Applied: applied(true, true, 0), OtherAgent: true}, Rest, 0},
		"nor evicted":                    {State{Applied: applied(false, true, 0), OtherAgent: true}, Rest, 0},
		"a wanted work rests": {
			State{Work: work(false, true, false), Applied: applied(false, true, 0)},
			Rest,
			0,
		},
		"a work that came back loses its stamp": {
			State{Work: work(false, true, false), Applied: applied(false, true, time.Minute)},
			Unstamp,
			0,
		},
		"a missed work is stamped": {State{Applied: applied(false, true, 0)}, Stamp, 0},
		"and kept during the grace": {
			State{Applied: applied(false, true, 45*time.Minute)},
			Rest,
			15 * time.Minute,
		},
		"and evicted after it": {State{Applied: applied(false, true, grace)}, Evict, 0},
		"one that was deleted when it was taken has no grace": {
			State{Applied: applied(false, true, time.Minute), Unreported: true},
			Evict,
			0,
		},
		"unless many are missed": {
			State{Applied: applied(false, true, time.Minute), Unreported: true, Missed: 6, Known: 10},
			Hold,
			0,
		},
		"or evictions are turned off": {State{Applied: applied(false, true, 0), Unreported: true, Grace: never}, Rest, 0},
		"the hub moved and its objects have another record": {
			State{Applied: holding(applied(false, true, 0)), Successor: holding(applied(false, true, 0))},
			Evict,
			0,
		},
		"the hub moved and some have none": {
			State{Applied: holding(applied(false, true, 0)), Successor: applied(false, true, 0)},
			Stamp,
			0,
		},
		"the hub moved and one is gone": {
			State{Applied: unmade(holding(applied(false, true, 0))), Successor: holding(applied(false, true, 0))},
			Evict,
			0,
		},
		"the hub moved, and nothing is ever evicted": {
			State{Applied: holding(applied(false, true, 0)), Successor: holding(applied(false, true, 0)), Grace: never},
			Evict,
			0,
		},
		"the hub moved and its work is not taken up yet": {
			State{Applied: applied(false, true, grace), Awaited: true},
			Rest,
			pendingLast,
		},
		"a deleted work that went back is noted first": {
			State{Work: work(true, true, false), Applied: holding(applied(false, true, 0)), WentBack: "older"},
			Mark,
			0,
		},
		"then its objects are kept": {
			State{Work: work(true, true, true), Applied: holding(applied(false, true, 0)), Unconfirmed: "older"},
			HoldDeletion,
			0,
		},
		"but if it takes nothing along": {
			State{Work: work(true, true, true), Applied: applied(false, true, 0), Unconfirmed: "older"},
			Delete,
			0,
		},
		"a missed work of a hub that went back is kept": {
			State{Applied: applied(false, true, grace), Unconfirmed: "older"},
			Hold,
			0,
		},
		"and so are others": {State{Applied: applied(false, true, grace), Others: 1}, Hold, 0},
		"the hub moved, and went back": {
			State{Applied: applied(false, true, grace), WentBack: "older"},
			Hold,
			0,
		},
		"a grace of a hundred years keeps it": {State{Applied: applied(false, true, 0), Grace: never}, Rest, 0},
		"and clears a stamp": {
			State{Applied: applied(false, true, time.Minute), Grace: never},
			Unstamp,
			0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			tc.state.Now = now
			if tc.state.Grace == 0 {
				tc.state.Grace = grace
			}
			step, wait := Decide(tc.state)
			require.Equal(t, tc.want, step)
			require.Equal(t, tc.wait, wait)
		})
	}
}

func TestAnUnappliedChangeIsTold(t *testing.T) {
	for name, tc := range map[string]struct {
		generation, observed int64
		want                 bool
	}{
		"deleted as it was applied":    {4, 3, false},
		"changed and deleted":          {5, 3, true},
		"never applied, never touched": {1, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Generation: tc.generation}}
			require.False(t, restored(w))
			if tc.observed != 0 {
				w.Status.Conditions = []metav1.Condition{{Type: "Applied", ObservedGeneration: tc.observed}}
			}
			require.Equal(t, tc.want, restored(w))
		})
	}
}

func TestPendingObjectsAreLookedAtLessAndLessOften(t *testing.T) {
	require.Equal(t, pendingFirst, pendingAfter(0))
	require.Equal(t, 10*time.Second, pendingAfter(40*time.Second))
	require.Equal(t, pendingLast, pendingAfter(time.Hour))
}
