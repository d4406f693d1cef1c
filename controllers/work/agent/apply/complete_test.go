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

	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent/drift"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent/status"
	"github.com/kubectl-ocm/kubectl-ocm/internal/apply"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

// finishing is a manifest with a rule for Complete and one for Degraded.
func finishing(name string) Manifest {
	m := configMap(name)
	m.Rules = apply.Rules{Conditions: []workv1.ConditionRule{
		{Condition: workv1.ConditionComplete, Type: workv1.ConditionRuleTypeCEL, CELExpressions: []string{"true"}},
		{Condition: workv1.ConditionDegraded, Type: workv1.ConditionRuleTypeCEL, CELExpressions: []string{"false"}},
	}}
	return m
}

func verdict(s metav1.ConditionStatus, message string) status.Verdict {
	return status.Verdict{Status: s, Reason: workv1.ReasonConditionRuleEvaluated, Message: message}
}

// ruled is the memory of an object whose condition Complete has that status.
func ruled(m Manifest, s metav1.ConditionStatus, change func(*Item)) *Item {
	return before(m, func(i *Item) {
		i.Reading = reading{asked: askedOf(m.Rules), from: "100", at: now.Add(-time.Hour)}
		i.Outcome.Rules = []status.RuleVerdict{{Condition: "Complete", Verdict: verdict(s, "memory")}}
		if change != nil {
			change(i)
		}
	})
}

// disowned is a live object that no work owns.
func disowned() apply.Seen {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetUID("o")
	u.SetResourceVersion("101")
	return apply.See(u)
}

// entryOf returns the entry of a manifest in a status written at a generation.
func entryOf(m Manifest, generation int64, complete metav1.ConditionStatus) workv1.ManifestCondition {
	return workv1.ManifestCondition{ResourceMeta: Decide(state(m)).Tasks[0].Meta, Conditions: []metav1.Condition{
		{Type: "Applied", Status: "True", Reason: "R", ObservedGeneration: generation},
		{
			Type:               "Complete",
			Status:             complete,
			Reason:             "ConditionRuleEvaluated",
			Message:            "status",
			ObservedGeneration: generation,
		},
	}}
}

func TestWhatIsCompleteRests(t *testing.T) {
	plain, other := finishing("one"), finishing("one")
	other.Raw, other.Object.Object["data"] = []byte("other"), map[string]any{"a": "b"}
	mark := (&Task{Item: Item{ID: apply.IDOf(maps, "n", "one")}, Object: plain.Object}).mark()
	gone, there := view{sight: drift.Absent}, view{seen: seen("100", "a"), sight: drift.Present}
	type marks = map[string]string
	recorded := marks{workv1.AnnotationCompleteManifests: "other " + mark}
	for name, tc := range map[string]struct {
		manifest    Manifest
		before      *Item
		shown       view
		annotations marks
		entry       *workv1.ManifestCondition
		rests, look bool
		write       bool
		message     string
	}{
		"complete and there": {
			manifest: plain,
			before:   ruled(plain, "True", nil),
			shown:    there,
			rests:    true,
			message:  "memory",
		},
		"complete and gone": {
			manifest: plain,
			before:   ruled(plain, "True", nil),
			shown:    gone,
			rests:    true,
			look:     true,
			message:  "memory",
		},
		"not complete and gone": {
			manifest: plain,
			before:   ruled(plain, "False", nil),
			shown:    gone,
			look:     true,
			write:    true,
			message:  "memory",
		},
		"complete but not applied": {
			manifest: plain,
			before:   ruled(plain, "True", func(i *Item) { i.Outcome.Applied = status.Failed("no") }),
			shown:    gone,
			look:     true,
			write:    true,
			message:  "memory",
		},
		"complete, changed by others": {
			manifest: plain,
			before:   ruled(plain, "True", func(i *Item) { i.Phase = resting }),
			shown:    view{seen: seen("101", "b"), sight: drift.Present},
			rests:    true,
			message:  "memory",
		},
		"complete, disowned by others": {
			manifest: plain,
			before:   ruled(plain, "True", func(i *Item) { i.Phase = resting }),
			shown:    view{seen: disowned(), sight: drift.Present},
			rests:    true,
			look:     true,
			message:  "memory",
		},
		"no longer complete": {
			manifest:    plain,
			before:      ruled(plain, "False", func(i *Item) { i.Phase = resting }),
			shown:       there,
			annotations: recorded,
			look:        true,
			write:       true,
			message:     "memory",
		},
		"recorded, an agent that restarts": {
			manifest:    plain,
			annotations: recorded,
			rests:       true,
			look:        true,
			message:     messageGone,
		},
		"recorded, with what the status says": {
			manifest:    plain,
			annotations: recorded,
			entry:       new(entryOf(plain, 1, "True")),
			rests:       true,
			look:        true,
			message:     "status",
		},
		"other options, the same content": {
			manifest:    plain,
			before:      ruled(plain, "True", func(i *Item) { i.Intent[0]++ }),
			annotations: recorded,
			rests:       true,
			look:        true,
			message:     messageGone,
		},
		"other content": {
			manifest:    other,
			before:      ruled(plain, "True", nil),
			annotations: recorded,
			entry:       new(entryOf(plain, 1, "True")),
			look:        true,
			write:       true,
		},
		"the status says so at this generation": {
			manifest: plain,
			entry:    new(entryOf(plain, 2, "True")),
			rests:    true,
			look:     true,
			message:  "status",
		},
		"the status says so at an earlier one": {
			manifest: plain,
			entry:    new(entryOf(plain, 1, "True")),
			look:     true,
			write:    true,
		},
		"the status says that it is not": {
			manifest: plain,
			entry:    new(entryOf(plain, 2, "False")),
			look:     true,
			write:    true,
		},
		"the rule is gone": {
			manifest:    configMap("one"),
			annotations: recorded,
			entry:       new(entryOf(plain, 2, "True")),
			look:        true,
			write:       true,
		},
		"a work that the agent does not apply": {
			manifest:    func() Manifest { m := finishing("one"); m.Refusal = errors.New("no"); return m }(),
			annotations: recorded,
			look:        true,
		},
		"recorded, and reading fails": {
			manifest: plain,
			before:   ruled(plain, "True", func(i *Item) { i.Phase, i.Fails, i.Next = resting, 3, now.Add(-1) }),
			shown:    gone,
			rests:    true,
			look:     true,
			message:  "memory",
		},
		"it failed before it came to be at rest": {
			manifest: plain,
			before:   ruled(plain, "True", func(i *Item) { i.Phase, i.Fails, i.Next = failing, 3, now.Add(-1) }),
			shown:    there,
			rests:    true,
			message:  "memory",
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := tc.manifest
			m.Before, m.Shown = tc.before, tc.shown
			s := state(m)
			s.Work.Generation = 2
			s.Applied.Annotations = tc.annotations
			if tc.entry != nil {
				s.Work.Status.ResourceStatus.Manifests = []workv1.ManifestCondition{*tc.entry}
			}
			task := Decide(s).Tasks[0]
			require.Equal(t, tc.rests, task.Phase == resting, "rests")
			require.Equal(t, tc.look, task.Action.looks(), "look")
			require.Equal(t, tc.write, task.Action.writes(), "write")
			if tc.message == "" {
				require.Nil(t, task.complete())
				return
			}
			require.Equal(t, tc.message, task.complete().Message)
			if tc.rests {
				require.Equal(t, status.Applied(""), task.Outcome.Applied)
			}
		})
	}
}

func TestMarksFollowWhatIsComplete(t *testing.T) {
	task := func(m Manifest, item *Item) Task {
		return Task{Item: *item, Object: m.Object, Rules: m.Rules}
	}
	one, two, three := finishing("one"), finishing("two"), configMap("three")
	tasks := []Task{task(one, ruled(one, "True", nil)), task(two, ruled(two, "False", nil)), task(three, ruled(three, "True", nil))}
	got := marks(tasks, []string{"old"})
	require.Equal(t, []string{tasks[0].mark()}, got, "only what a rule says is complete")
	require.NotEqual(t, tasks[0].mark(), tasks[1].mark())
	tasks = append(tasks, Task{Item: Item{Phase: broken}})
	require.ElementsMatch(t,
		append(got, "old"), marks(tasks, []string{"old", got[0]}), "what cannot be resolved may be recorded")
	require.Empty(t, marks(nil, []string{"old"}))
}

// TestARefusedManifestStaysMarked has a complete manifest refused for a while, for an
// agent that remembers it and for one that restarts.
func TestARefusedManifestStaysMarked(t *testing.T) {
	m := finishing("one")
	mark := (&Task{Item: *before(m, nil), Object: m.Object}).mark()
	decide := func(recorded []string, manifests ...Manifest) ([]Task, []string) {
		s := state(manifests...)
		s.Applied.Annotations = map[string]string{workv1.AnnotationCompleteManifests: strings.Join(recorded, " ")}
		tasks := Decide(s).Tasks
		return tasks, marks(tasks, recorded)
	}
	for name, remembered := range map[string]*Item{"it remembers": ruled(m, "True", func(i *Item) { i.Phase = resting }), "it restarts": nil} {
		broken := m
		broken.Refusal, broken.Before = errors.New("a jq path that cannot be parsed"), remembered
		tasks, recorded := decide([]string{mark}, broken)
		require.False(t, tasks[0].Action.writes(), name)
		require.Equal(t, []string{mark}, recorded, name)
		mended := m
		mended.Before, mended.Shown = &tasks[0].Item, view{sight: drift.Absent}
		tasks, recorded = decide(recorded, mended)
		require.Equal(t, resting, tasks[0].Phase, name)
		require.False(t, tasks[0].Action.writes(), "%s: a Job that is gone would run again", name)
		require.Equal(t, []string{mark}, recorded, name)
	}
	refused, other := m, finishing("one")
	refused.Refusal = errors.New("no")
	_, recorded := decide(nil, refused)
	require.Empty(t, recorded, "a refused manifest does not count as complete")
	other.Raw, other.Object.Object["data"] = []byte("other"), map[string]any{"a": "b"}
	_, recorded = decide([]string{mark}, other, m)
	require.Empty(t, recorded, "another content is applied in its place")
	other.Refusal = refused.Refusal
	_, recorded = decide([]string{mark}, other, refused)
	require.Equal(t, []string{mark}, recorded, "neither is applied")
}

// An existing record takes precedence over the one that it succeeded.
func TestMarksAreInheritedUntilThereIsARecord(t *testing.T) {
	plain := finishing("one")
	mark := (&Task{Item: Item{ID: apply.IDOf(maps, "n", "one")}, Object: plain.Object}).mark()
	s := state(plain)
	s.Inherited = []string{mark}
	require.NotEqual(t, resting, Decide(s).Tasks[0].Phase)
	s.Applied = nil
	require.Equal(t, resting, Decide(s).Tasks[0].Phase)
	s.Inherited = []string{"other"}
	require.NotEqual(t, resting, Decide(s).Tasks[0].Phase)
}
