// SPDX-License-Identifier: Apache-2.0

package apply

import (
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

	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent/drift"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent/executor"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent/status"
	"github.com/kubectl-ocm/kubectl-ocm/internal/apply"
	"github.com/kubectl-ocm/kubectl-ocm/internal/digest"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

// asking is a manifest with feedback rules.
func asking(name string) Manifest {
	m := configMap(name)
	m.Rules = apply.Rules{Feedback: []workv1.FeedbackRule{{
		Type: workv1.FeedbackRuleTypeJSONPaths, JSONPaths: []workv1.JSONPath{{Name: "a", Path: ".data.a"}},
	}}}
	return m
}

// value is a feedback value of text.
func value(name, text string) workv1.FeedbackValue {
	return workv1.FeedbackValue{Name: name, FieldValue: workv1.FieldValue{Type: workv1.ValueTypeString, String: &text}}
}

func TestDecideReadsForRulesWhatChanged(t *testing.T) {
	present := func(s apply.Seen) view { return view{seen: s, sight: drift.Present} }
	values := []workv1.FeedbackValue{value("a", "1")}
	leftOut := func(generation int64) func(*Item) {
		return func(i *Item) { i.Reading.values, i.Reading.leftOut = noValues, generation }
	}
	for name, tc := range map[string]struct {
		remembered func(*Item)
		change     func(*Manifest)
		status     []workv1.FeedbackValue
		shown      view
		last       time.Time
		read       bool
		wait       time.Duration
	}{
		"the object is as it was read":         {status: values, shown: present(seen("100", "a"))},
		"a change of fields that are not ours": {status: values, shown: present(seen("101", "a")), read: true},
		"the watch lags behind the read":       {status: values, shown: present(seen("99", "a"))},
		"the watch has not listed yet":         {status: nil, shown: view{sight: drift.Unknown}},
		"it was read a moment ago": {
			remembered: func(i *Item) { i.Reading.at = now.Add(-200 * time.Millisecond) },
			status:     values,
			shown:      present(seen("101", "a")),
			wait:       300 * time.Millisecond,
		},
		"it was looked at a moment ago": {
			remembered: func(i *Item) { i.Looked = now.Add(-200 * time.Millisecond) },
			status:     values,
			shown:      present(seen("101", "a")),
			wait:       300 * time.Millisecond,
		},
		"another object was read a moment ago": {
			last:   now.Add(-200 * time.Millisecond),
			status: values,
			shown:  present(seen("101", "a")),
			wait:   300 * time.Millisecond,
		},
		"reading fails all the time": {
			remembered: func(i *Item) { i.Reading.at, i.Reading.fails = now.Add(-time.Second), 30 },
			status:     values,
			shown:      present(seen("101", "a")),
			wait:       59 * time.Second,
		},
		"others removed the values on the hub": {status: nil, shown: present(seen("100", "a")), read: true},
		"others changed the values on the hub": {
			status: []workv1.FeedbackValue{value("a", "2")},
			shown:  present(seen("100", "a")),
			read:   true,
		},
		"values did not fit in the status":     {remembered: leftOut(7), shown: present(seen("100", "a"))},
		"they did not, and the object changed": {remembered: leftOut(7), shown: present(seen("101", "a")), read: true},
		"they did not, and the work changed":   {remembered: leftOut(6), shown: present(seen("100", "a")), read: true},
		"a rule was put off": {
			remembered: func(i *Item) { i.Reading.late, i.Reading.at = now.Add(-50*time.Second), now.Add(-50*time.Second) },
			status:     values,
			shown:      present(seen("100", "a")),
			wait:       10 * time.Second,
		},
		"a rule was put off, a minute ago": {
			remembered: func(i *Item) { i.Reading.late, i.Reading.at = now.Add(-time.Minute), now.Add(-time.Minute) },
			status:     values,
			shown:      present(seen("100", "a")),
			read:       true,
		},
		"other rules": {
			change: func(m *Manifest) { m.Rules.Feedback[0].JSONPaths[0].Path = ".data.b" },
			status: values,
			shown:  present(seen("100", "a")),
			read:   true,
		},
		"no rules any more": {
			change: func(m *Manifest) { m.Rules = apply.Rules{} },
			status: values,
			shown:  present(seen("101", "a")),
		},
		"an object that the agent does not apply": {
			change:     func(m *Manifest) { m.Refusal = errors.New("no") },
			remembered: func(i *Item) { i.Intent[0]++ },
			status:     values,
			shown:      present(seen("101", "a")),
		},
		"an object whose apply waits for a change": {
			remembered: func(i *Item) { i.Phase, i.Fails, i.Next = failing, 1, now.Add(time.Minute) },
			status:     values,
			shown:      present(seen("101", "a")),
			read:       true,
			wait:       time.Minute,
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := asking("one")
			m.Before = before(m, func(i *Item) {
				i.Reading = reading{asked: askedOf(m.Rules), from: "100", at: now.Add(-time.Hour), values: digest.Of(values)}
				if tc.remembered != nil {
					tc.remembered(i)
				}
			})
			if tc.change != nil {
				tc.change(&m)
			}
			m.Shown = tc.shown
			s := state(m)
			s.Read, s.Work.Generation = tc.last, 7
			entry := workv1.ManifestCondition{ResourceMeta: Decide(s).Tasks[0].Meta}
			entry.StatusFeedback.Values = tc.status
			s.Work.Status.ResourceStatus.Manifests = []workv1.ManifestCondition{entry}
			p := Decide(s)
			require.Equal(t, tc.read, p.Tasks[0].Action == read)
			require.Equal(t, tc.wait, p.RequeueAfter)
			require.False(t, p.Tasks[0].Action.writes())
		})
	}
}

func TestWhatIsSaidWithoutRulesAndWithoutApply(t *testing.T) {
	s := state(configMap("one"))
	task := Decide(s).Tasks[0]
	require.Equal(t, status.NoFeedback(), task.Outcome.Feedback)
	require.True(t, task.Outcome.Fresh, "values of rules that are gone go")

	m := asking("one")
	task = Decide(state(m)).Tasks[0]
	require.Empty(t, task.Outcome.Feedback.Status, "nothing is said before something was read")

	m.Refusal = errors.New("no")
	task = Decide(state(m)).Tasks[0]
	require.Equal(t, status.FeedbackFailed(errNotRead), task.Outcome.Feedback)
	require.Equal(t, digest.Sum{}, task.Reading.asked)
}

// TestValuesThatDoNotFitAreNotCalledRead builds the status of a work in several passes,
// of which only the first has read the objects.
func TestValuesThatDoNotFitAreNotCalledRead(t *testing.T) {
	const many = 200
	items := make([]Item, many)
	outcomes := make([]status.Outcome, many)
	room := 0
	for i := range items {
		found := []workv1.FeedbackValue{value("a", strings.Repeat("x", 1000))}
		items[i].Meta = workv1.ManifestResourceMeta{Ordinal: int32(i), Kind: "ConfigMap", Name: fmt.Sprint("m", i)} //nolint:gosec // few
		items[i].Reading = reading{asked: digest.Sum{1}, values: digest.Of(found)}
		items[i].Outcome = status.Outcome{Applied: status.Applied(""), Available: status.Exists(true), Feedback: status.FeedbackSynced()}
		outcomes[i] = items[i].Outcome
		outcomes[i].Meta, outcomes[i].Values, outcomes[i].Fresh = items[i].Meta, found, true
	}
	for _, room = range []int{160_000, 40_000} {
		var stands workv1.ManifestWorkStatus
		list := slices.Clone(items)
		stands = status.Fit(status.Build(stands, 7, outcomes, now), stands, room)
		require.True(t, status.Crowded(stands))
		for i := range list {
			list[i].markLeftOut(stands, 7)
		}
		for pass := range 3 {
			later := make([]status.Outcome, many)
			for i := range list {
				later[i] = list[i].Outcome
				later[i].Meta = list[i].Meta
			}
			next := status.Fit(status.Build(stands, 7, later, now.Add(time.Hour)), stands, room)
			require.True(t, status.Same(stands, next), "pass %d writes the status anew", pass)
			for _, e := range next.ResourceStatus.Manifests {
				c := apimeta.FindStatusCondition(e.Conditions, workv1.ConditionStatusFeedbackSynced)
				require.Equal(t,
					len(e.StatusFeedback.Values) > 0, c.Status == metav1.ConditionTrue, "%s: %s", e.ResourceMeta.Name, c.Message)
			}
			stands = next
		}
	}
}

func TestNothingIsReadForAnExecutorThatWasNotAdmitted(t *testing.T) {
	account := executor.Account{Namespace: "n", Name: "robot"}
	shown := view{seen: seen("101", "a"), sight: drift.Present}
	for name, tc := range map[string]struct {
		item Item
		read bool
	}{
		"the agent itself":            {Item{}, true},
		"an executor with the rights": {Item{Executor: account, Granted: true, Phase: kept}, true},
		"an executor whose rights could not be checked": {
			Item{Executor: account, Fails: 1, Next: now.Add(time.Minute), Phase: failing},
			false,
		},
		"an executor without the rights": {Item{Executor: account, Phase: denied}, false},
		"an object at rest":              {Item{Executor: account, Phase: resting}, true},
	} {
		t.Run(name, func(t *testing.T) {
			tc.item.Reading = reading{asked: digest.Sum{1}, from: "100", at: now.Add(-time.Hour)}
			read, wait := tc.item.readDue(shown, time.Time{}, now)
			require.Equal(t, tc.read, read)
			require.Zero(t, wait)
		})
	}
}

func TestOnlyAnObjectWithTheOwnerOfItsWorkAnnouncesItself(t *testing.T) {
	foreign := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"uid": "u"}}}
	mine := foreign.DeepCopy()
	mine.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "work.open-cluster-management.io/v1", Kind: "AppliedManifestWork", Name: "w", UID: "ours"}})
	for name, tc := range map[string]struct {
		live *unstructured.Unstructured
		o    apply.Options
		want bool
	}{
		"none yet":                 {nil, apply.Options{Strategy: "ServerSideApply", Owned: true}, true},
		"ours":                     {mine, apply.Options{Strategy: "ServerSideApply", Owned: true}, true},
		"somebody else's":          {foreign, apply.Options{Strategy: "ServerSideApply", Owned: true}, false},
		"none that is to be owned": {nil, apply.Options{Strategy: "Update"}, false},
		"none that is written":     {nil, apply.Options{Strategy: "ReadOnly", Owned: true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			task := Task{Item: Item{Options: tc.o}, Action: write}
			if tc.live != nil {
				task.Result.Seen = apply.See(tc.live)
			}
			require.Equal(t, tc.want, task.marked(tc.live != nil, "ours"))
		})
	}
}
