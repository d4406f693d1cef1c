// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent/rules"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent/status"
	"github.com/kubectl-ocm/kubectl-ocm/internal/apply"
	"github.com/kubectl-ocm/kubectl-ocm/internal/digest"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

// costlyTasks returns manifests whose rules use up the budget of a pass after a few of
// them, and a live object for all.
func costlyTasks(n int) ([]Task, *unstructured.Unstructured) {
	live := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"text": strings.Repeat("a", 1<<18)}}}
	live.SetResourceVersion("1")
	costly := workv1.ConditionRule{Condition: "Costly", Type: workv1.ConditionRuleTypeCEL,
		CELExpressions: slices.Repeat([]string{"!object.data.text.contains('" + strings.Repeat("b", 200) + "')"}, 40)}
	tasks := make([]Task, n)
	for i := range tasks {
		tasks[i].Action, tasks[i].Rules = read, apply.Rules{Conditions: []workv1.ConditionRule{costly}}
		tasks[i].Reading.asked, tasks[i].Intent = askedOf(tasks[i].Rules), digest.Sum{1}
	}
	return tasks, live
}

// The rules of objects that change all the time cost too much together. Each object is
// still evaluated again and again, and its last result stays until then.
func TestRulesThatWaitedLongestComeFirst(t *testing.T) {
	t.Parallel()
	tasks, live := costlyTasks(20)
	clk := clocktesting.NewFakeClock(time.Unix(1_800_000_000, 0))
	evaluator := rules.New()
	since := make([]int, len(tasks))
	for round := range 12 {
		p := &pass{Controller: New(Config{Clock: clk}), plan: Plan{Tasks: tasks}, rules: evaluator.Round(clk), state: State{Work: &workv1.ManifestWork{}}}
		judged := 0
		for _, i := range turns(tasks) {
			known := tasks[i].Reading.judged == tasks[i].Intent
			p.evaluateRules(t.Context(), &tasks[i], live)
			switch {
			case tasks[i].Reading.late.IsZero():
				judged++
				since[i] = round
			case known:
				require.NotEqual(t,
					metav1.ConditionUnknown, tasks[i].Outcome.Rules[0].Status, "a known result is forgotten while the rule waits")
			default:
				require.Equal(t, metav1.ConditionUnknown, tasks[i].Outcome.Rules[0].Status)
			}
		}
		require.Positive(t, judged)
		require.Less(t, judged, len(tasks), "the test needs rules that cost more than a pass may")
		clk.Step(time.Minute)
	}
	require.GreaterOrEqual(t, slices.Min(since), 6, "one was not judged for six passes: %v", since)
}

// The verdict kept while a rule waits is for the same content; an edit that was applied
// is not complete because the earlier content was.
func TestAVerdictIsKeptForTheSameContentOnly(t *testing.T) {
	t.Parallel()
	tasks, live := costlyTasks(1)
	clk := clocktesting.NewFakeClock(time.Unix(1_800_000_000, 0))
	used := func() *rules.Round {
		r := rules.New().Round(clk)
		for {
			if _, late := r.Evaluate(t.Context(), tasks[0].Rules.Conditions, live, nil); late {
				return r
			}
		}
	}
	before := []status.RuleVerdict{
		{
			Condition: "Costly",
			Verdict:   status.Verdict{Status: metav1.ConditionTrue, Reason: workv1.ReasonConditionRuleEvaluated, Message: "told before"},
		},
	}
	told := metav1.Condition{
		Type:               "Costly",
		Status:             metav1.ConditionTrue,
		Reason:             workv1.ReasonConditionRuleEvaluated,
		Message:            "told by an earlier agent",
		ObservedGeneration: 2,
	}
	applied := metav1.Condition{Type: workv1.ConditionApplied, Status: metav1.ConditionTrue, ObservedGeneration: 2}
	for name, tc := range map[string]struct {
		judged     digest.Sum
		generation int64
		want       string
	}{
		"the same content":                {digest.Sum{1}, 2, "told before"},
		"other content":                   {digest.Sum{2}, 2, "not evaluated yet"},
		"an agent that restarts":          {digest.Sum{}, 2, "told by an earlier agent"},
		"an agent that restarts, an edit": {digest.Sum{}, 3, "not evaluated yet"},
	} {
		t.Run(name, func(t *testing.T) {
			task := tasks[0]
			task.Meta = workv1.ManifestResourceMeta{Version: "v1", Kind: "ConfigMap", Resource: "configmaps", Name: "one"}
			task.Reading.judged, task.Outcome.Rules = tc.judged, before
			work := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Generation: tc.generation}}
			work.Status.ResourceStatus.Manifests = []workv1.ManifestCondition{{ResourceMeta: task.Meta, Conditions: []metav1.Condition{applied, told}}}
			p := &pass{Controller: New(Config{Clock: clk}), plan: Plan{Tasks: []Task{task}}, rules: used(), state: State{Work: work}}
			p.evaluateRules(t.Context(), &task, live)
			require.True(t, strings.HasPrefix(task.Outcome.Rules[0].Message, tc.want), fmt.Sprint(task.Outcome.Rules))
			require.Equal(t, clk.Now(), task.Reading.late)
		})
	}
}

func TestTurns(t *testing.T) {
	t.Parallel()
	at := func(minutes int) reading { return reading{late: time.Unix(int64(minutes)*60, 0)} }
	tasks := []Task{
		{Rank: 5, Action: write},
		{Rank: 0, Action: read},
		{Rank: 5, Action: write, Item: Item{Reading: at(2)}},
		{Rank: 1000, Action: read, Item: Item{Reading: at(3)}},
		{Rank: 5, Action: read, Item: Item{Reading: at(1)}},
		{Rank: 5, Action: write, Item: Item{Reading: at(1)}},
		{Rank: 0, Action: write},
	}
	require.Equal(t,
		[]int{4, 3, 1, 6, 5, 2, 0}, turns(tasks),
		"writes keep to their ranks, reads for rules that wait come before them")
}
