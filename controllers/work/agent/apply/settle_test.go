// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent/executor"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/agent/status"
	"github.com/kubectl-ocm/kubectl-ocm/internal/apply"
	"github.com/kubectl-ocm/kubectl-ocm/internal/apply/ignore"
)

func TestWhatFollowsAReadDependsOnWhatItWasFor(t *testing.T) {
	fault := errors.New("connection refused")
	for name, tc := range map[string]struct {
		action  action
		phase   phase
		err     error
		refusal error
		want    step
		becomes phase
	}{
		"a new object":                    {action: write, want: bring, becomes: fresh},
		"a new object, not readable":      {action: write, err: fault, want: done, becomes: failing},
		"one that changed":                {action: repair, phase: kept, want: bring, becomes: kept},
		"one that failed, again":          {action: write, phase: failing, err: fault, want: done, becomes: failing},
		"one that others hold, fails":     {action: write, phase: blocked, err: fault, want: done, becomes: failing},
		"one at rest":                     {action: tend, phase: resting, want: own, becomes: resting},
		"one at rest, not readable":       {action: tend, phase: resting, err: fault, want: done, becomes: resting},
		"one that is refused":             {action: look, refusal: fault, want: done, becomes: refused},
		"one that is refused, unreadable": {action: look, err: fault, refusal: fault, want: done, becomes: refused},
		"for rules":                       {action: read, phase: kept, want: tell, becomes: kept},
		"for rules, while it fails":       {action: read, phase: failing, want: tell, becomes: failing},
		"for rules, at rest":              {action: read, phase: resting, want: own, becomes: resting},
		"for rules, not readable":         {action: read, phase: kept, err: fault, want: done, becomes: kept},
	} {
		t.Run(name, func(t *testing.T) {
			m := configMap("one")
			task := Task{Item: *before(m, nil), Object: m.Object, Action: tc.action, Refusal: tc.refusal}
			task.Phase = tc.phase
			require.Equal(t, tc.want, task.decideStep(&unstructured.Unstructured{}, tc.err, now))
			require.Equal(t, tc.becomes, task.Phase)
			if tc.err != nil {
				require.Equal(t, status.Unreadable(tc.err.Error()), task.Outcome.Available)
			} else {
				require.Equal(t, status.Exists(true), task.Outcome.Available)
			}
			if tc.action == read {
				require.Equal(t, status.Applied(""), task.Outcome.Applied, "a read for rules does not change Applied")
			}
		})
	}
}

func TestAFailureSaysWhenTheManifestIsTriedAgain(t *testing.T) {
	m := configMap("one")
	for name, tc := range map[string]struct {
		err   error
		want  phase
		fails int
	}{
		"others hold its fields":   {&apply.ConflictError{Err: errors.New("no")}, blocked, 0},
		"it is on its way out":     {&apply.DeletingError{}, blocked, 0},
		"fields cannot be ignored": {&ignore.Error{}, blocked, 0},
		"the executor may not":     {&executor.DeniedError{}, denied, 0},
		"anything else":            {errors.New("no"), failing, 4},
	} {
		t.Run(name, func(t *testing.T) {
			task := Task{Item: *before(m, nil), Object: m.Object, Action: write}
			task.Phase, task.Fails, task.Next, task.Granted = failing, 3, now, true
			task.setFailed(tc.err, now)
			require.Equal(t, tc.want, task.Phase)
			require.Equal(t, tc.fails, task.Fails)
			require.Equal(t, tc.fails == 0, task.Next.IsZero())
			require.Equal(t, tc.want != denied, task.Granted, "a denial, and nothing else, revokes the grant")
			require.NotEqual(t, status.Applied("").Status, task.Outcome.Applied.Status)
			require.False(t, task.recordKept(apply.Result{Seen: seen("101", "a")}), "what failed was not there to be repaired")
			require.Equal(t, kept, task.Phase)
			require.Equal(t, status.Applied(""), task.Outcome.Applied)
		})
	}
}

func TestARepairIsAWriteThatChangedWhatWasKept(t *testing.T) {
	m := configMap("one")
	for name, tc := range map[string]struct {
		action  action
		version string
		rival   string
		want    bool
	}{
		"a repair":                     {repair, "101", "", true},
		"the write changed nothing":    {repair, "100", "", false},
		"a first write":                {write, "101", "", false},
		"an older work's content":      {repair, "101", "older", false},
		"the content of an older work": {write, "101", "older", false},
	} {
		t.Run(name, func(t *testing.T) {
			task := Task{Item: *before(m, nil), Object: m.Object, Action: tc.action, Rival: tc.rival}
			task.Looked = now.Add(-time.Hour)
			require.Equal(t, tc.want, task.recordKept(apply.Result{Seen: seen(tc.version, "a")}))
			require.Equal(t, tc.want, task.Repairs == 1)
			require.Equal(t, kept, task.Phase)
		})
	}
}

// If two manifests declare one object, the first applies it and the second is refused:
// the memory of the second must not be used for the first.
func TestOfAnObjectThatStandsTwiceTheFirstIsRemembered(t *testing.T) {
	m := configMap("one")
	second := *before(m, func(i *Item) { i.Phase = refused })
	r := &record{owner: "u", items: []Item{*before(m, nil), second}}
	named, nameless := r.remembered(state().Applied)
	require.Equal(t, kept, named[second.ID].Phase)
	require.Empty(t, nameless)
	r.owner = "of another record"
	named, _ = r.remembered(state().Applied)
	require.Empty(t, named)
}
