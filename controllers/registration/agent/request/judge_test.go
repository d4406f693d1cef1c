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
		want   Verdict
		says   string
		after  time.Duration
	}{
		"the hub has not answered": {Answer{}, time.Time{}, Unclear, "waiting for an answer", Recheck},
		"the hub cannot be asked":  {Answer{Problem: "forbidden"}, time.Time{}, Unclear, "forbidden", Recheck},
		"begun, and not there":     {Answer{Known: true}, time.Time{}, Unsent, "asking", 0},
		"made, and not shown yet": {
			Answer{Known: true},
			ago(4 * time.Second),
			Unclear,
			"to show",
			7 * time.Second,
		},
		"made, and gone":               {Answer{Known: true}, ago(time.Minute), Lost, "no longer shows", 0},
		"made in the future, and gone": {Answer{Known: true}, ago(-time.Hour), Lost, "no longer shows", 0},
		"made, and the hub went away": {
			Answer{Known: true, Problem: "refused"},
			ago(time.Minute),
			Unclear,
			"refused",
			Recheck,
		},
		"begun, and the hub went away": {
			Answer{Known: true, Problem: "refused"},
			time.Time{},
			Unclear,
			"refused",
			Recheck,
		},
		"open": {
			Answer{Known: true, Found: true},
			time.Time{},
			Open,
			"r1 waits for approval on the hub",
			0,
		},
		"approved": {
			Answer{Known: true, Found: true, Approved: true},
			time.Time{},
			Open,
			"r1 is approved and waits for the signer",
			0,
		},
		"open, and the hub went away": {
			Answer{Known: true, Found: true, Problem: "refused"},
			time.Time{},
			Unclear,
			"it is not known whether certificate request r1 was answered: refused",
			Recheck,
		},
		"denied": {
			Answer{Known: true, Found: true, Denied: true, Message: "no"},
			time.Time{},
			Refused,
			"no",
			0,
		},
		"approved, and the signer failed": {
			Answer{Known: true, Found: true, Approved: true, Denied: true, Message: "no"},
			time.Time{},
			Refused,
			"no",
			0,
		},
		"signed": {
			Answer{Known: true, Found: true, Approved: true, Certificate: []byte("c")},
			time.Time{},
			Signed,
			"keeping",
			0,
		},
		"signed, and the hub went away since then": {
			Answer{Known: true, Found: true, Certificate: []byte("c"), Problem: "refused"},
			time.Time{},
			Signed,
			"",
			0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := tc.answer.Judge("r1", now, tc.asked)
			require.Equal(t, tc.want, got.Verdict, got.Message)
			require.Contains(t, got.Message, tc.says)
			require.Equal(t, tc.after, got.After)
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
