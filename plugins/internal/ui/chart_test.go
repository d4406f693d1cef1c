// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/cluster"
)

// A bar is as long for every rollout, and shows each kind of cluster that there is.
func TestTheBarOfARollout(t *testing.T) {
	for want, r := range map[string]cluster.Rollout{
		"-":                     {},
		"[########] 3/3":        {Total: 3, Done: 3},
		"[........] 0/5":        {Total: 5, Waiting: 5},
		"[####>>!.] 10/20":      {Total: 20, Done: 10, Running: 5, Failed: 2, Waiting: 3},
		"[#####>!.] 997/1000":   {Total: 1000, Done: 997, Running: 1, Failed: 1, Waiting: 1},
		"[###>>>..] 1/3":        {Total: 3, Done: 1, Running: 1, Waiting: 1},
		"[#######!] 9999/10000": {Total: 10000, Done: 9999, Failed: 1},
	} {
		require.Equal(t, want, Bar(r))
	}
}

func TestWhenARolloutWas(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	since := &metav1.Time{Time: now.Add(-5 * time.Minute)}
	for want, r := range map[string]cluster.Rollout{
		"-":                                   {Since: since},
		"done 5m ago":                         {Total: 1, Done: 1, Since: since},
		"done":                                {Total: 1, Done: 1},
		"1 running, 2 failed, 3 waiting (5m)": {Total: 6, Running: 1, Failed: 2, Waiting: 3, Since: since},
		"1 running":                           {Total: 2, Done: 1, Running: 1},
	} {
		require.Equal(t, want, When(r, now))
	}
}

// Each state has a mark of its own shape, so that a chart can be read without colour.
func TestTheMarksOfAChartDiffer(t *testing.T) {
	for _, lang := range []string{"C", "C.UTF-8"} {
		u := &UI{Streams: Streams{Getenv: func(string) string { return lang }}}
		seen := map[string]bool{}
		for state := range heat {
			require.Len(t, []rune(u.Heat(state)), 1)
			seen[u.Heat(state)] = true
		}
		require.Len(t, seen, len(heat))
		require.Equal(t, []string{u.Heat(fleet.Done) + u.Heat(fleet.Done), u.Heat(fleet.Done)}, u.HeatLines(fleet.Done, 3, 2))
		require.Equal(t, bad, toneOf(u.Heat(fleet.Broken)+u.Heat(fleet.Broken)))
		require.Equal(t, pending, toneOf(u.Heat(fleet.Running)))
	}
}
