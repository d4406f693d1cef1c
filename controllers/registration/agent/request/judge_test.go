// SPDX-License-Identifier: Apache-2.0

package request

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestJudge(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	for name, tc := range map[string]struct {
		answer Answer
		asked  time.Time
		want   Plan
		says   string
		after  time.Duration
	}{
		"the hub has not answered": {Answer{}, time.Time{}, Plan{Stage: Preparing}, "waiting for an answer", Recheck},
		"the hub cannot be asked":  {Answer{Problem: "forbidden"}, time.Time{}, Plan{Stage: Preparing}, "forbidden", Recheck},
		"begun, and not there":     {Answer{Known: true}, time.Time{}, Plan{Step: StepAsk, Stage: Preparing}, "asking", 0},
		"made, and not shown yet": {
			Answer{Known: true},
			ago(4 * time.Second),
			Plan{Stage: Preparing},
			"to show",
			7 * time.Second,
		},
		"made, and gone":               {Answer{Known: true}, ago(time.Minute), Plan{Step: StepRestart, Stage: Preparing}, "no longer shows", 0},
		"made in the future, and gone": {Answer{Known: true}, ago(-time.Hour), Plan{Step: StepRestart, Stage: Preparing}, "no longer shows", 0},
		"made, and the hub went away": {
			Answer{Known: true, Problem: "refused"},
			ago(time.Minute),
			Plan{Stage: Preparing},
			"refused",
			Recheck,
		},
		"begun, and the hub went away": {
			Answer{Known: true, Problem: "refused"},
			time.Time{},
			Plan{Stage: Preparing},
			"refused",
			Recheck,
		},
		"open": {
			Answer{Known: true, Found: true},
			time.Time{},
			Plan{Stage: Waiting},
			"r1 waits for approval on the hub",
			0,
		},
		"approved": {
			Answer{Known: true, Found: true, Approved: true},
			time.Time{},
			Plan{Stage: Waiting},
			"r1 is approved and waits for the signer",
			0,
		},
		"open, and the hub went away": {
			Answer{Known: true, Found: true, Problem: "refused"},
			time.Time{},
			Plan{Stage: Preparing},
			"it is not known whether certificate request r1 was answered: refused",
			Recheck,
		},
		"denied": {
			Answer{Known: true, Found: true, Denied: true, Message: "no"},
			time.Time{},
			Plan{Step: StepPostpone, Stage: Denied},
			"no",
			0,
		},
		"approved, and the signer failed": {
			Answer{Known: true, Found: true, Approved: true, Denied: true, Message: "no"},
			time.Time{},
			Plan{Step: StepPostpone, Stage: Denied},
			"no",
			0,
		},
		"signed": {
			Answer{Known: true, Found: true, Approved: true, Certificate: []byte("c")},
			time.Time{},
			Plan{Step: StepKeep, Stage: Preparing},
			"keeping",
			0,
		},
		"signed, and the hub went away since then": {
			Answer{Known: true, Found: true, Certificate: []byte("c"), Problem: "refused"},
			time.Time{},
			Plan{Step: StepKeep, Stage: Preparing},
			"",
			0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := tc.answer.judge("r1", now, tc.asked)
			require.Contains(t, got.Message, tc.says)
			require.Equal(t, tc.after, got.RequeueAfter)
			got.Message, got.RequeueAfter = "", 0
			require.Equal(t, tc.want, got)
		})
	}
}

func TestAskedIsOfOneRequest(t *testing.T) {
	at := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	a := Asked{Name: "r1", At: at}
	require.Equal(t, at, a.When("r1"))
	require.Zero(t, a.When("r10"))
	require.Zero(t, Asked{}.When("r1"))
}
