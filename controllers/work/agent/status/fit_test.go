// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

// many returns the outcomes of n manifests, of which every tenth failed.
func many(n int) []Outcome {
	var out []Outcome
	for i := range n {
		o := Outcome{
			Meta: workv1.ManifestResourceMeta{
				Ordinal:  int32(i),
				Version:  "v1",
				Kind:     "ConfigMap",
				Resource: "configmaps",
				Name:     fmt.Sprint("m", i),
			}, //nolint:gosec // few
			Applied: Applied(""), Available: Exists(true), Feedback: NoFeedback(),
		}
		if i%10 == 9 {
			o.Applied = Failed("no")
		}
		out = append(out, o)
	}
	return out
}

func TestAStatusThatFitsStaysAsItIs(t *testing.T) {
	s := Build(workv1.ManifestWorkStatus{}, 1, many(100), time.Unix(1000, 0))
	require.Equal(t, s, Fit(s, workv1.ManifestWorkStatus{}, size(s)))
	require.False(t, LeftOut(s))
}

func TestMessagesThatTellNothingGoFirst(t *testing.T) {
	s := Build(workv1.ManifestWorkStatus{}, 1, many(100), time.Unix(1000, 0))
	fit := Fit(s, workv1.ManifestWorkStatus{}, size(s)-1)
	require.LessOrEqual(t, size(fit), size(s)-1)
	require.Len(t, fit.ResourceStatus.Manifests, 100)
	require.False(t, LeftOut(fit))
	for i, e := range fit.ResourceStatus.Manifests {
		require.Len(t, e.Conditions, 3)
		for _, c := range e.Conditions {
			require.Equal(t, c.Status != metav1.ConditionTrue, c.Message != "", "manifest %d, %s", i, c.Type)
		}
	}
	require.NotEmpty(t, s.ResourceStatus.Manifests[0].Conditions[0].Message, "the status that was given is not changed")
}

func TestEntriesThatSayThatAllIsWellGoNext(t *testing.T) {
	s := Build(workv1.ManifestWorkStatus{}, 1, many(1000), time.Unix(1000, 0))
	s.ResourceStatus.Manifests[990].StatusFeedback.Values = []workv1.FeedbackValue{{Name: "v"}}
	room := size(s) / 4
	fit := Fit(s, workv1.ManifestWorkStatus{}, room)
	require.LessOrEqual(t, size(fit), room)
	require.Greater(t, size(fit), room*9/10, "what fits is there")
	require.True(t, LeftOut(fit))
	failed, last, values := 0, int32(-1), false
	for _, e := range fit.ResourceStatus.Manifests {
		require.Greater(t, e.ResourceMeta.Ordinal, last, "the order of the spec")
		last = e.ResourceMeta.Ordinal
		if !isHealthy(e) && len(e.StatusFeedback.Values) == 0 {
			failed++
		}
		values = values || len(e.StatusFeedback.Values) > 0
	}
	require.Equal(t, 100, failed, "all failures are reported")
	require.True(t, values, "and so is feedback")
	n := len(fit.ResourceStatus.Manifests)
	require.Equal(t,
		fmt.Sprintf("%s; %d of 1000%s", workv1.MessageWorkFailed, 1000-n, leftOutText), fit.Conditions[0].Message)

	again := Fit(Build(fit, 1, many(1000), time.Unix(2000, 0)), fit, room)
	again.ResourceStatus.Manifests = again.ResourceStatus.Manifests[:10]
	fit.ResourceStatus.Manifests = fit.ResourceStatus.Manifests[:10]
	require.True(t, Same(fit, again), "a second pass changes nothing")
}

func TestEvenFailuresAreBounded(t *testing.T) {
	outcomes := many(1000)
	for i := range outcomes {
		outcomes[i].Applied = Failed(strings.Repeat("x", 100))
	}
	room := leastRoom
	fit := Fit(Build(workv1.ManifestWorkStatus{}, 1, outcomes, time.Unix(1000, 0)), workv1.ManifestWorkStatus{}, room)
	require.LessOrEqual(t, size(fit), room)
	require.NotEmpty(t, fit.ResourceStatus.Manifests)
	require.True(t, LeftOut(fit))
}

func TestTheRoomIsWhatTheWorkLeaves(t *testing.T) {
	work := &workv1.ManifestWork{}
	empty := Room(work)
	var entry workv1.Manifest
	entry.Raw = []byte(`"` + strings.Repeat("x", 500_000) + `"`)
	work.Spec.Workload.Manifests = []workv1.Manifest{entry}
	work.Status.Conditions = []metav1.Condition{{Type: "X"}}
	require.InDelta(t, empty-500_000, Room(work), 200)
	work.Spec.Workload.Manifests = append(work.Spec.Workload.Manifests, entry, entry, entry)
	require.Equal(t, leastRoom, Room(work))
}
