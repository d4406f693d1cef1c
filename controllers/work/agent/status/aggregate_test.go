// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent/status"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

// ruled returns outcomes with conditions of one type, one for each letter: T, F and U are
// statuses, "-" is a manifest without the condition.
func ruled(kind, letters string) []status.Outcome {
	statuses := map[rune]metav1.ConditionStatus{'T': "True", 'F': "False", 'U': "Unknown"}
	var out []status.Outcome
	for i, letter := range letters {
		o := good(int32(i), strings.Repeat("x", i+1))
		if s, ok := statuses[letter]; ok {
			o.Rules = []status.RuleVerdict{{Condition: kind, Verdict: status.Verdict{Status: s, Reason: "ConditionRuleEvaluated", Message: "it is " + string(letter)}}}
		}
		out = append(out, o)
	}
	return out
}

func TestConditionsOfRulesAreAggregated(t *testing.T) {
	for name, tc := range map[string]struct {
		kind, letters string
		status        metav1.ConditionStatus
		message       string
	}{
		"the only one speaks for itself":             {"Complete", "T", "True", "it is T"},
		"manifests without it take no part":          {"Complete", "-T-", "True", "it is T"},
		"all are true":                               {"Complete", "TTT", "True", "Aggregated from 3 manifest conditions"},
		"one is unknown":                             {"Complete", "TUT", "Unknown", "Aggregated from 3 manifest conditions"},
		"one is false":                               {"Complete", "UFT", "False", "Aggregated from 3 manifest conditions"},
		"any other type is aggregated like Complete": {"Own", "TF", "False", "Aggregated from 2 manifest conditions"},
		"one progresses":                             {"Progressing", "FUT", "True", "Aggregated from 3 manifest conditions"},
		"of one it is not known": {
			"Progressing",
			"FU-",
			"Unknown",
			"Aggregated from 2 manifest conditions",
		},
		"none progresses":                    {"Progressing", "FF", "False", "Aggregated from 2 manifest conditions"},
		"degraded is false if one is not so": {"Degraded", "TF", "False", "Aggregated from 2 manifest conditions"},
	} {
		t.Run(name, func(t *testing.T) {
			s := status.Build(workv1.ManifestWorkStatus{}, 3, ruled(tc.kind, tc.letters), now)
			got := work(s, tc.kind)
			require.Equal(t, tc.status, got.Status)
			require.Equal(t, "ConditionRulesAggregated", got.Reason)
			require.Equal(t, tc.message, got.Message)
			require.Equal(t, int64(3), got.ObservedGeneration)
			for i, m := range s.ResourceStatus.Manifests {
				c := apimeta.FindStatusCondition(m.Conditions, tc.kind)
				require.Equal(t, tc.letters[i] != '-', c != nil)
				require.True(t, c == nil || c.ObservedGeneration == 3)
			}
			require.True(t, status.Same(s, status.Build(s, 3, ruled(tc.kind, tc.letters), later)))
		})
	}
}

func TestAConditionThatNoManifestHasIsRemovedFromTheWork(t *testing.T) {
	first := status.Build(workv1.ManifestWorkStatus{}, 1, ruled("Complete", "TT"), now)
	require.Equal(t, metav1.ConditionTrue, work(first, "Complete").Status)
	fewer := status.Build(first, 2, ruled("Complete", "-T"), later)
	require.Equal(t, "it is T", work(fewer, "Complete").Message, "the rule of the first manifest is gone")
	none := status.Build(fewer, 3, ruled("Complete", "--"), later)
	require.Empty(t, work(none, "Complete"))
	gone := first.DeepCopy()
	gone.ResourceStatus.Manifests = nil
	require.Empty(t,
		work(status.Build(*gone, 1, ruled("Complete", "--"), later), "Complete"), "at the same generation too")
}

func TestAWorkWithoutRulesKeepsWhatOthersMade(t *testing.T) {
	theirs := metav1.Condition{Type: "Complete", Status: "True", Reason: "SomebodyElse"}
	before := workv1.ManifestWorkStatus{Conditions: []metav1.Condition{theirs}}
	require.Equal(t, theirs, work(status.Build(before, 2, ruled("Complete", "-"), now), "Complete"))
}

func TestMessagesOfRulesCountTowardsTheBoundOfAStatus(t *testing.T) {
	outcomes := ruled("Complete", strings.Repeat("T", 500))
	for i := range outcomes {
		for range 15 {
			v := outcomes[i].Rules[0]
			v.Condition, v.Message = "C"+strings.Repeat("x", len(outcomes[i].Rules)), strings.Repeat("m", 1024)
			outcomes[i].Rules = append(outcomes[i].Rules, v)
		}
	}
	total := 0
	for _, m := range status.Build(workv1.ManifestWorkStatus{}, 1, outcomes, now).ResourceStatus.Manifests {
		for _, c := range m.Conditions {
			total += len(c.Message)
		}
	}
	require.Less(t, total, 1100<<10)
}
