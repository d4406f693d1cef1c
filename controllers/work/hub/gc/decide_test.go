// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

var now = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

func TestDecide(t *testing.T) {
	key := reconcile.Key{Namespace: "c1", Name: "job"}
	for name, tc := range map[string]struct {
		since time.Duration
		ttl   int64
		wait  time.Duration
	}{
		"its time is over": {since: 10 * time.Second, ttl: 10},
		"it is long over":  {since: time.Hour, ttl: 10},
		"it comes back when the rest of its time is up": {since: 4 * time.Second, ttl: 10, wait: 6 * time.Second},
		"nothing is at once":                            {ttl: 0},
		"nothing is at once, whatever the agent's time": {since: -time.Hour, ttl: 0},
		"less than nothing is at once":                  {since: -time.Hour, ttl: -5},
		"the least of all numbers is at once":           {ttl: math.MinInt64},
		"the largest of all numbers is never over": {
			since: 10 * 365 * 24 * time.Hour,
			ttl:   math.MaxInt64,
			wait:  maxWait,
		},
		"a long time is waited for in pieces": {since: time.Second, ttl: 30 * 24 * 3600, wait: maxWait},
		"a time to come delays it":            {since: -time.Minute, ttl: 10, wait: 70 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			plan := Decide(State{Key: key, Work: Finished{UID: "u", Version: "7", Since: now.Add(-tc.since), TTL: tc.ttl}, Now: now})
			require.Equal(t, tc.wait, plan.RequeueAfter)
			require.Nil(t, plan.Object)
			if tc.wait > 0 {
				require.Empty(t, plan.Writes)
				require.Empty(t, plan.Events)
				return
			}
			require.Equal(t, []reconcile.Write{reconcile.Remove{Target: reconcile.Target{
				Resource: worksResource, Namespace: "c1", Name: "job", UID: "u", Version: "7",
			}}}, plan.Writes)
			require.Len(t, plan.Events, 1)
			require.Contains(t, plan.Events[0].Message, fmt.Sprintf("ttlSecondsAfterFinished is %d", tc.ttl))
		})
	}
}

func work(t *testing.T, metadata, spec, conditions string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	require.NoError(t, u.UnmarshalJSON(fmt.Appendf(nil, `{"apiVersion":"work.open-cluster-management.io/v1","kind":"ManifestWork",
		"metadata":{"namespace":"c1","name":"job","uid":"u","resourceVersion":"7","generation":2%s},
		"spec":{"workload":{"manifests":[]}%s},"status":{"conditions":[%s]}}`, metadata, spec, conditions)))
	return u
}

func TestWhatIsRemembered(t *testing.T) {
	const (
		ttl  = `,"deleteOption":{"ttlSecondsAfterFinished":30}`
		done = `{"type":"Complete","status":"True","observedGeneration":2,"lastTransitionTime":"2026-08-01T12:00:00Z"}`
	)
	got, ok := keep(work(t, "", ttl, done))
	require.True(t, ok)
	require.True(t, got.Since.Equal(now))
	got.Since = now
	require.Equal(t, Finished{UID: "u", Version: "7", Since: now, TTL: 30}, got)

	for name, u := range map[string]*unstructured.Unstructured{
		"one that is being deleted": work(t, `,"deletionTimestamp":"2026-08-01T12:00:00Z"`, ttl, done),
		"no delete option":          work(t, "", "", done),
		"no time to live":           work(t, "", `,"deleteOption":{"propagationPolicy":"Orphan"}`, done),
		"a time that is no number":  work(t, "", `,"deleteOption":{"ttlSecondsAfterFinished":"soon"}`, done),
		"no time, spelt out":        work(t, "", `,"deleteOption":{"ttlSecondsAfterFinished":null}`, done),
		"no condition":              work(t, "", ttl, ""),
		"not complete":              work(t, "", ttl, `{"type":"Complete","status":"False","observedGeneration":2,"lastTransitionTime":"2026-08-01T12:00:00Z"}`),
		"complete before the edit":  work(t, "", ttl, `{"type":"Complete","status":"True","observedGeneration":1,"lastTransitionTime":"2026-08-01T12:00:00Z"}`),
		"another condition":         work(t, "", ttl, `{"type":"Applied","status":"True","observedGeneration":2,"lastTransitionTime":"2026-08-01T12:00:00Z"}`),
	} {
		_, ok := keep(u)
		require.False(t, ok, name)
	}
}

func TestWhatWakesTheLoop(t *testing.T) {
	one := Finished{UID: "u", Version: "7", Since: now, TTL: 30}
	for name, tc := range map[string]struct {
		change func(*Finished)
		same   bool
	}{
		"another version alone":    {func(f *Finished) { f.Version = "8" }, true},
		"another object":           {func(f *Finished) { f.UID = "v" }, false},
		"complete at another time": {func(f *Finished) { f.Since = now.Add(time.Second) }, false},
		"another time to live":     {func(f *Finished) { f.TTL = 31 }, false},
	} {
		other := one
		tc.change(&other)
		require.Equal(t, tc.same, same(one, other), name)
	}
}
