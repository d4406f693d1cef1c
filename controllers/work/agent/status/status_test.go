// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent/status"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

var (
	now   = time.Unix(1_800_000_000, 0)
	later = now.Add(time.Minute)
)

func meta(ordinal int32, name string) workv1.ManifestResourceMeta {
	return workv1.ManifestResourceMeta{Ordinal: ordinal, Version: "v1", Kind: "ConfigMap", Resource: "configmaps", Namespace: "n", Name: name}
}

func good(ordinal int32, name string) status.Outcome {
	return status.Outcome{Meta: meta(ordinal, name), Applied: status.Applied(""), Available: status.Exists(true), Feedback: status.NoFeedback()}
}

func with(o status.Outcome, change func(*status.Outcome)) status.Outcome {
	change(&o)
	return o
}

func work(s workv1.ManifestWorkStatus, kind string) metav1.Condition {
	for _, c := range s.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return metav1.Condition{}
}

func TestTheWorkSumsItsManifestsUp(t *testing.T) {
	missing := func(o *status.Outcome) { o.Available = status.Exists(false) }
	unread := func(o *status.Outcome) { o.Available = status.Unreadable("no route") }
	for name, tc := range map[string]struct {
		outcomes                                     []status.Outcome
		applied, available                           metav1.ConditionStatus
		appliedReason, availableReason, availableMsg string
	}{
		"all is well": {
			[]status.Outcome{good(0, "a"), good(1, "b")}, "True", "True",
			"AppliedManifestWorkComplete", "ResourcesAvailable", "All resources are available",
		},
		"one failed": {
			[]status.Outcome{good(0, "a"), with(good(1, "b"), func(o *status.Outcome) { o.Applied = status.Failed("no") })}, "False", "True",
			"AppliedManifestWorkFailed", "ResourcesAvailable", "All resources are available",
		},
		"one is missing and one unknown": {
			[]status.Outcome{good(0, "a"), with(good(1, "b"), missing), with(good(2, "c"), unread)}, "True", "False",
			"AppliedManifestWorkComplete", "ResourcesNotAvailable", "1 of 3 resources are not available",
		},
		"one is unknown": {
			[]status.Outcome{good(0, "a"), with(good(1, "b"), unread)}, "True", "Unknown",
			"AppliedManifestWorkComplete", "ResourcesStatusUnknown", "1 of 2 resources have unknown status",
		},
		"there is none": {
			nil, "", "Unknown", "", "ResourcesStatusUnknown", "cannot get any available resource ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := status.Build(workv1.ManifestWorkStatus{}, 3, tc.outcomes, now)
			applied, available := work(s, "Applied"), work(s, "Available")
			require.Equal(t, tc.applied, applied.Status)
			require.Equal(t, tc.appliedReason, applied.Reason)
			require.Equal(t, tc.available, available.Status)
			require.Equal(t, tc.availableReason, available.Reason)
			require.Equal(t, tc.availableMsg, available.Message)
			require.Equal(t, int64(3), available.ObservedGeneration)
		})
	}
}

func TestVerdictsHaveTheContractsWords(t *testing.T) {
	for want, v := range map[string]status.Verdict{
		"True AppliedManifestComplete Apply manifest complete":                       status.Applied(""),
		"True AppliedManifestComplete Apply manifest complete: merged":               status.Applied("merged"),
		"False AppliedManifestFailed Failed to apply manifest: x":                    status.Failed("x"),
		"False AppliedManifestSSAIgnoreFieldError Failed to process ignoreFields: x": status.IgnoreFieldsFailed("x"),
		"True ResourceAvailable Resource is available":                               status.Exists(true),
		"False ResourceNotAvailable Resource is not available":                       status.Exists(false),
		"Unknown FetchingResourceFailed Failed to fetch resource: x":                 status.Unreadable("x"),
		"Unknown IncompleteResourceMeta Resource meta is incomplete":                 status.Unnamed(),
		"True NoStatusFeedbackSynced ":                                               status.NoFeedback(),
		"True StatusFeedbackSynced ":                                                 status.FeedbackSynced(),
		"False StatusFeedbackSyncFailed Sync status feedback failed with error x":    status.FeedbackFailed("x"),
	} {
		require.Equal(t, want, string(v.Status)+" "+v.Reason+" "+v.Message)
	}
}

func TestAnUnchangedOutcomeChangesNothing(t *testing.T) {
	outcomes := []status.Outcome{good(0, "a"), good(1, "b")}
	first := status.Build(workv1.ManifestWorkStatus{}, 1, outcomes, now)
	again := status.Build(first, 1, outcomes, later)
	require.Empty(t, cmp.Diff(first, again))
	require.True(t, status.Same(first, again))
	other := status.Build(first, 1, []status.Outcome{good(0, "a"), with(good(1, "b"), func(o *status.Outcome) { o.Applied = status.Failed("x") })}, later)
	require.False(t, status.Same(first, other))
}

func TestANewGenerationRestartsAppliedAlone(t *testing.T) {
	first := status.Build(workv1.ManifestWorkStatus{}, 1, []status.Outcome{good(0, "a")}, now)
	next := status.Build(first, 2, []status.Outcome{good(0, "a")}, later)
	conditions := next.ResourceStatus.Manifests[0].Conditions
	require.Equal(t, "Applied", conditions[2].Type)
	require.True(t, conditions[2].LastTransitionTime.Time.Equal(later))
	require.Equal(t, int64(2), conditions[2].ObservedGeneration)
	for _, c := range conditions[:2] {
		require.True(t, c.LastTransitionTime.Time.Equal(now), c.Type)
		require.Zero(t, c.ObservedGeneration, c.Type)
	}
	require.True(t, work(next, "Applied").LastTransitionTime.Time.Equal(now), "the work was applied all the time")
}

func TestEntriesFollowTheirManifests(t *testing.T) {
	value := "1"
	before := workv1.ManifestWorkStatus{ResourceStatus: workv1.ManifestResourceStatus{Manifests: []workv1.ManifestCondition{
		{
			ResourceMeta: meta(0, "a"), Conditions: []metav1.Condition{{Type: "Theirs", Status: "True", Reason: "R"}},
			StatusFeedback: workv1.StatusFeedbackResult{
				Values: []workv1.FeedbackValue{{Name: "v", FieldValue: workv1.FieldValue{Type: "String", String: &value}}},
			},
		},
		{ResourceMeta: meta(1, "b"), Conditions: []metav1.Condition{{Type: "Other", Status: "True", Reason: "R"}}},
		{
			ResourceMeta: meta(2, "c"),
		}, {
			ResourceMeta: meta(3, "c"),
			Conditions:   []metav1.Condition{{Type: "Twice", Status: "True", Reason: "R"}},
		},
	}}}
	after := status.Build(before, 1, []status.Outcome{good(0, "b"), good(1, "a"), good(2, "new"), good(3, "c"), good(4, "c")}, now)
	types := func(i int) string {
		var out []string
		for _, c := range after.ResourceStatus.Manifests[i].Conditions {
			out = append(out, c.Type)
		}
		return strings.Join(out, " ")
	}
	own := " Applied Available StatusFeedbackSynced"
	require.Equal(t, "Other"+own, types(0))
	require.Equal(t, "Theirs"+own, types(1))
	require.Len(t, after.ResourceStatus.Manifests[1].StatusFeedback.Values, 1)
	require.Equal(t, own[1:], types(2))
	require.Equal(t, "Twice"+own, types(3), "the entry of the same place comes first")
	require.Equal(t, own[1:], types(4), "two candidates are none")
}

func TestConditionsOfRemovedRulesGo(t *testing.T) {
	rule := func(generation int64) metav1.Condition {
		return metav1.Condition{Type: "Complete", Status: "True", Reason: "ConditionRuleEvaluated", ObservedGeneration: generation}
	}
	for generation, want := range map[int64]int{1: 3, 2: 4} {
		before := workv1.ManifestWorkStatus{
			Conditions: []metav1.Condition{rule(generation)},
			ResourceStatus: workv1.ManifestResourceStatus{
				Manifests: []workv1.ManifestCondition{
					{ResourceMeta: meta(0, "a"), Conditions: []metav1.Condition{rule(generation)}},
				},
			},
		}
		after := status.Build(before, 2, []status.Outcome{good(0, "a")}, now)
		require.Len(t, after.ResourceStatus.Manifests[0].Conditions, want)
		require.Len(t, after.Conditions, want-1)
	}
}

func values(texts ...string) []workv1.FeedbackValue {
	var out []workv1.FeedbackValue
	for _, text := range texts {
		out = append(out, workv1.FeedbackValue{Name: "v", FieldValue: workv1.FieldValue{Type: "String", String: &text}})
	}
	return out
}

func TestValuesThatChangeRestartTheirConditionAlone(t *testing.T) {
	read := func(texts ...string) []status.Outcome {
		return []status.Outcome{with(good(0, "a"), func(o *status.Outcome) {
			o.Feedback, o.Values, o.Fresh = status.FeedbackSynced(), values(texts...), true
		})}
	}
	synced := func(s workv1.ManifestWorkStatus) metav1.Condition {
		for _, c := range s.ResourceStatus.Manifests[0].Conditions {
			if c.Type == "StatusFeedbackSynced" {
				return c
			}
		}
		return metav1.Condition{}
	}
	first := status.Build(workv1.ManifestWorkStatus{}, 1, read("1"), now)
	require.Equal(t, values("1"), first.ResourceStatus.Manifests[0].StatusFeedback.Values)
	require.True(t, status.Same(first, status.Build(first, 1, read("1"), later)), "the same value is no news")

	next := status.Build(first, 1, read("2"), later)
	require.False(t, status.Same(first, next))
	require.Equal(t, values("2"), next.ResourceStatus.Manifests[0].StatusFeedback.Values)
	require.True(t, synced(next).LastTransitionTime.Time.Equal(later))
	require.Zero(t, synced(next).ObservedGeneration)
	for _, c := range next.ResourceStatus.Manifests[0].Conditions[:2] {
		require.True(t, c.LastTransitionTime.Time.Equal(now), c.Type)
	}

	unread := with(good(0, "a"), func(o *status.Outcome) { o.Feedback = status.Verdict{} })
	stays := status.Build(next, 1, []status.Outcome{unread}, later.Add(time.Minute))
	require.Empty(t, cmp.Diff(next, stays), "values that were not read stay")
	gone := status.Build(next, 1, []status.Outcome{with(good(0, "a"), func(o *status.Outcome) { o.Fresh = true })}, later)
	require.Empty(t, gone.ResourceStatus.Manifests[0].StatusFeedback.Values)
}

func TestValuesAreComparedByWhatTheyHold(t *testing.T) {
	hold := func(v workv1.FieldValue) workv1.ManifestWorkStatus {
		return workv1.ManifestWorkStatus{ResourceStatus: workv1.ManifestResourceStatus{Manifests: []workv1.ManifestCondition{{
			StatusFeedback: workv1.StatusFeedbackResult{Values: []workv1.FeedbackValue{{Name: "v", FieldValue: v}}},
		}}}}
	}
	all := []workv1.FieldValue{
		{Type: "Integer", Integer: new(int64(1))}, {Type: "Integer", Integer: new(int64(2))}, {Type: "Integer"},
		{Type: "String", String: new("1")}, {Type: "String", String: new("2")},
		{Type: "Boolean", Boolean: new(true)}, {Type: "Boolean", Boolean: new(false)},
		{Type: "JsonRaw", JSONRaw: new("[]")}, {Type: "JsonRaw", JSONRaw: new("{}")},
	}
	for i, a := range all {
		for j, b := range all {
			require.Equal(t, i == j, status.Same(hold(a), hold(*b.DeepCopy())), "%d and %d", i, j)
		}
	}
}

func TestConditionsOfRulesStandWithTheirManifest(t *testing.T) {
	rule := func(message string) []status.RuleVerdict {
		return []status.RuleVerdict{{Condition: "Complete", Verdict: status.Verdict{Status: "True", Reason: "ConditionRuleEvaluated", Message: message}}}
	}
	outcome := with(good(0, "a"), func(o *status.Outcome) { o.Rules = rule("done") })
	first := status.Build(workv1.ManifestWorkStatus{}, 1, []status.Outcome{outcome}, now)
	c := first.ResourceStatus.Manifests[0].Conditions[3]
	require.Equal(t, "Complete done", c.Type+" "+c.Message)
	require.Equal(t, int64(1), c.ObservedGeneration)
	next := status.Build(first, 2, []status.Outcome{outcome}, later)
	require.Len(t, next.ResourceStatus.Manifests[0].Conditions, 4, "it belongs to the new generation")
}

func TestAStatusStaysSmallAndValid(t *testing.T) {
	var outcomes []status.Outcome
	for i := range int32(2000) {
		outcomes = append(outcomes, with(good(i, "a"), func(o *status.Outcome) {
			o.Applied = status.Failed(strings.Repeat("ä", 600))
			o.Available = status.Unreadable(strings.Repeat("ö", 600))
		}))
	}
	s := status.Build(workv1.ManifestWorkStatus{}, 1, outcomes, now)
	total := 0
	for _, m := range s.ResourceStatus.Manifests {
		for _, c := range m.Conditions {
			require.True(t, utf8.ValidString(c.Message))
			total += len(c.Message)
		}
	}
	require.Less(t, total, 600<<10)
}
