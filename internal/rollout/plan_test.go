// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kubectl-ocm/kubectl-ocm/internal/rollout"
	clusterv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1alpha1"
)

var now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func config(deadline, maxFailures string, soak time.Duration) clusterv1alpha1.RolloutConfig {
	c := clusterv1alpha1.RolloutConfig{ProgressDeadline: deadline, MaxFailures: intstr.Parse(maxFailures)}
	c.MinSuccessTime.Duration = soak
	return c
}

func all(deadline string) clusterv1alpha1.RolloutStrategy {
	return clusterv1alpha1.RolloutStrategy{All: &clusterv1alpha1.RolloutAll{RolloutConfig: config(deadline, "0", 0)}}
}

func progressive(c clusterv1alpha1.RolloutConfig, concurrency string, mandatory ...clusterv1alpha1.MandatoryDecisionGroup) clusterv1alpha1.RolloutStrategy {
	p := &clusterv1alpha1.RolloutProgressive{RolloutConfig: c}
	p.MandatoryDecisionGroups.MandatoryDecisionGroups = mandatory
	if concurrency != "" {
		n := intstr.Parse(concurrency)
		p.MaxConcurrency = &n
	}
	return clusterv1alpha1.RolloutStrategy{Type: clusterv1alpha1.RolloutTypeProgressive, Progressive: p}
}

func perGroup(c clusterv1alpha1.RolloutConfig, mandatory ...clusterv1alpha1.MandatoryDecisionGroup) clusterv1alpha1.RolloutStrategy {
	p := &clusterv1alpha1.RolloutProgressivePerGroup{RolloutConfig: c}
	p.MandatoryDecisionGroups.MandatoryDecisionGroups = mandatory
	return clusterv1alpha1.RolloutStrategy{Type: clusterv1alpha1.RolloutTypeProgressivePerGroup, ProgressivePerGroup: p}
}

func named(name string) clusterv1alpha1.MandatoryDecisionGroup {
	return clusterv1alpha1.MandatoryDecisionGroup{GroupName: name}
}

func at(index int32) clusterv1alpha1.MandatoryDecisionGroup {
	return clusterv1alpha1.MandatoryDecisionGroup{GroupIndex: index}
}

// three groups: a with c1 and c2, b with c3 and c4, and one without a name.
func three() []rollout.Group {
	return []rollout.Group{
		{Name: "a", Index: 0, Clusters: []string{"c1", "c2"}},
		{Name: "b", Index: 1, Clusters: []string{"c3", "c4"}},
		{Index: 2, Clusters: []string{"c5", "c6"}},
	}
}

// is returns the state of a cluster that has had it for the given time.
func is(name string, s rollout.Status, since time.Duration) rollout.Cluster {
	return rollout.Cluster{Name: name, Status: s, Since: now.Add(-since)}
}

func TestPlan(t *testing.T) {
	const (
		progressing = rollout.Progressing
		succeeded   = rollout.Succeeded
		failed      = rollout.Failed
	)
	type list = []string
	cases := map[string]struct {
		strategy clusterv1alpha1.RolloutStrategy
		clusters []rollout.Cluster
		want     rollout.Plan
	}{
		"All starts every cluster": {
			all("None"), nil,
			rollout.Plan{Start: list{"c1", "c2", "c3", "c4", "c5", "c6"}},
		},
		"All is not stopped by failures, and tells who is late": {
			all("10m"),
			[]rollout.Cluster{
				is("c1", failed, time.Hour),
				is("c2", progressing, time.Hour),
				is("c3", failed, time.Minute),
				is("c4", succeeded, 0),
			},
			rollout.Plan{
				Start:    list{"c5", "c6"},
				InFlight: list{"c3"},
				Done:     list{"c4"},
				TimedOut: list{"c1", "c2"},
				Recheck:  9 * time.Minute,
			},
		},
		"a cluster that left the placement is removed": {
			all("None"), []rollout.Cluster{is("gone", succeeded, 0)},
			rollout.Plan{Start: list{"c1", "c2", "c3", "c4", "c5", "c6"}, Removed: list{"gone"}},
		},
		"Progressive without a size starts all": {
			progressive(config("", "0", 0), ""), nil,
			rollout.Plan{Start: list{"c1", "c2", "c3", "c4", "c5", "c6"}},
		},
		"Progressive keeps to its size": {
			progressive(config("", "0", 0), "2"), []rollout.Cluster{is("c1", succeeded, 0), is("c2", progressing, 0)},
			rollout.Plan{Start: list{"c3"}, InFlight: list{"c2"}, Done: list{"c1"}, Waiting: list{"c4", "c5", "c6"}},
		},
		"a share of the clusters is rounded up": {
			progressive(config("", "0", 0), "25%"), nil,
			rollout.Plan{Start: list{"c1", "c2"}, Waiting: list{"c3", "c4", "c5", "c6"}},
		},
		"a size above the number of clusters is that number": {
			progressive(config("", "0", 0), "100"), nil,
			rollout.Plan{Start: list{"c1", "c2", "c3", "c4", "c5", "c6"}},
		},
		"a success that has not lasted holds its place": {
			progressive(config("", "0", time.Minute), "1"), []rollout.Cluster{is("c1", succeeded, 40*time.Second)},
			rollout.Plan{InFlight: list{"c1"}, Waiting: list{"c2", "c3", "c4", "c5", "c6"}, Recheck: 20 * time.Second},
		},
		"a success that has lasted makes room": {
			progressive(config("", "0", time.Minute), "1"), []rollout.Cluster{is("c1", succeeded, time.Minute)},
			rollout.Plan{Start: list{"c2"}, Done: list{"c1"}, Waiting: list{"c3", "c4", "c5", "c6"}},
		},
		"one failure stops the start of others": {
			progressive(config("", "0", 0), "3"), []rollout.Cluster{is("c1", failed, 0), is("c2", progressing, 0)},
			rollout.Plan{InFlight: list{"c1", "c2"}, Waiting: list{"c3", "c4", "c5", "c6"}, Breach: true},
		},
		"a failure that is tolerated holds its place until the deadline": {
			progressive(config("5m", "1", 0), "2"), []rollout.Cluster{is("c1", failed, time.Minute)},
			rollout.Plan{
				Start:    list{"c2"},
				InFlight: list{"c1"},
				Waiting:  list{"c3", "c4", "c5", "c6"},
				Recheck:  4 * time.Minute,
			},
		},
		"after the deadline it makes room and still counts": {
			progressive(config("5m", "1", 0), "2"),
			[]rollout.Cluster{
				is("c1", failed, time.Hour),
				is("c2", progressing, time.Hour),
			},
			rollout.Plan{Waiting: list{"c3", "c4", "c5", "c6"}, TimedOut: list{"c1", "c2"}, Breach: true},
		},
		"a deadline of nothing is over at once": {
			progressive(config("0s", "0", 0), "1"), []rollout.Cluster{is("c1", progressing, 0)},
			rollout.Plan{Waiting: list{"c2", "c3", "c4", "c5", "c6"}, TimedOut: list{"c1"}, Breach: true},
		},
		"more tolerated failures than clusters tolerate all": {
			progressive(config("1s", "100", 0), "6"),
			[]rollout.Cluster{
				is("c1", progressing, time.Hour),
				is("c2", progressing, time.Hour),
			},
			rollout.Plan{Start: list{"c3", "c4", "c5", "c6"}, TimedOut: list{"c1", "c2"}},
		},
		"a cluster that is skipped holds up nobody": {
			progressive(config("", "0", 0), "1"), []rollout.Cluster{{Name: "c1", Status: rollout.Skip}},
			rollout.Plan{Start: list{"c2"}, Skipped: list{"c1"}, Waiting: list{"c3", "c4", "c5", "c6"}},
		},
		"an unknown status counts as progressing, without a time from now": {
			progressive(config("1m", "0", 0), "1"), []rollout.Cluster{{Name: "c1", Status: "odd"}},
			rollout.Plan{InFlight: list{"c1"}, Waiting: list{"c2", "c3", "c4", "c5", "c6"}, Recheck: time.Minute},
		},
		"a time in the future is now": {
			progressive(config("1m", "0", 0), "1"), []rollout.Cluster{is("c1", progressing, -time.Hour)},
			rollout.Plan{InFlight: list{"c1"}, Waiting: list{"c2", "c3", "c4", "c5", "c6"}, Recheck: time.Minute},
		},
		"mandatory groups go first, in the order in which they are named": {
			progressive(config("", "0", 0), "1", named("b"), at(0)), nil,
			rollout.Plan{Start: list{"c3", "c4"}, Waiting: list{"c1", "c2", "c5", "c6"}},
		},
		"the second mandatory group waits for the first": {
			progressive(config("", "0", 0), "1", named("b"), at(0)),
			[]rollout.Cluster{
				is("c3", succeeded, 0),
				is("c4", progressing, 0),
			},
			rollout.Plan{InFlight: list{"c4"}, Done: list{"c3"}, Waiting: list{"c1", "c2", "c5", "c6"}},
		},
		"after the mandatory groups the others go by size": {
			progressive(config("", "0", 0), "1", named("b"), at(0)),
			[]rollout.Cluster{
				is("c1", succeeded, 0),
				is("c2", succeeded, 0),
				is("c3", succeeded, 0),
				is("c4", succeeded, 0),
			},
			rollout.Plan{Start: list{"c5"}, Done: list{"c1", "c2", "c3", "c4"}, Waiting: list{"c6"}},
		},
		"a mandatory group tolerates no failure": {
			progressive(config("1m", "6", 0), "6", named("a")),
			[]rollout.Cluster{
				is("c1", succeeded, 0),
				is("c2", progressing, time.Hour),
			},
			rollout.Plan{Done: list{"c1"}, TimedOut: list{"c2"}, Waiting: list{"c3", "c4", "c5", "c6"}, Breach: true},
		},
		"a late cluster of another group does not hold up a mandatory one": {
			progressive(config("1m", "1", 0), "6", named("a")),
			[]rollout.Cluster{
				is("c1", succeeded, 0),
				is("c6", progressing, time.Hour),
			},
			rollout.Plan{Start: list{"c2"}, Done: list{"c1"}, TimedOut: list{"c6"}, Waiting: list{"c3", "c4", "c5"}},
		},
		"a mandatory group that does not exist is passed over": {
			progressive(config("", "0", 0), "1", named("z"), at(9)), nil,
			rollout.Plan{Start: list{"c1"}, Waiting: list{"c2", "c3", "c4", "c5", "c6"}},
		},
		"per group the clusters of a group start together": {
			perGroup(config("", "0", 0)), nil,
			rollout.Plan{Start: list{"c1", "c2"}, Waiting: list{"c3", "c4", "c5", "c6"}},
		},
		"per group the next waits for the last of the one before": {
			perGroup(config("", "0", 0)), []rollout.Cluster{is("c1", succeeded, 0), is("c2", progressing, 0)},
			rollout.Plan{InFlight: list{"c2"}, Done: list{"c1"}, Waiting: list{"c3", "c4", "c5", "c6"}},
		},
		"per group a failure that is tolerated does not hold up the next": {
			perGroup(config("", "50%", 0)), []rollout.Cluster{is("c1", succeeded, 0), is("c2", failed, 0)},
			rollout.Plan{Start: list{"c3", "c4"}, InFlight: list{"c2"}, Done: list{"c1"}, Waiting: list{"c5", "c6"}},
		},
		"per group a failure that is not tolerated does": {
			perGroup(config("1s", "0", 0)), []rollout.Cluster{is("c1", succeeded, 0), is("c2", failed, time.Hour)},
			rollout.Plan{Done: list{"c1"}, TimedOut: list{"c2"}, Waiting: list{"c3", "c4", "c5", "c6"}, Breach: true},
		},
		"per group a mandatory one goes first": {
			perGroup(config("", "0", 0), at(2)), nil,
			rollout.Plan{Start: list{"c5", "c6"}, Waiting: list{"c1", "c2", "c3", "c4"}},
		},
		"a cluster that came late to a group that was done starts": {
			perGroup(config("", "0", 0)),
			[]rollout.Cluster{
				is("c1", succeeded, 0),
				is("c3", succeeded, 0),
				is("c4", progressing, 0),
			},
			rollout.Plan{Start: list{"c2"}, InFlight: list{"c4"}, Done: list{"c1", "c3"}, Waiting: list{"c5", "c6"}},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s, err := rollout.Parse(c.strategy)
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(c.want, s.Plan(three(), c.clusters, now)))
		})
	}
}

// Clusters that failed before the rollout was resumed block no other cluster, and stay in
// the Plan.
func TestAResumedRolloutForgivesWhatWasBefore(t *testing.T) {
	before, after := now.Add(-10*time.Minute), now.Add(-time.Minute)
	cases := map[string]struct {
		strategy clusterv1alpha1.RolloutStrategy
		clusters []rollout.Cluster
		want     rollout.Plan
	}{
		"out of time by then": {
			progressive(config("5m", "0", 0), "2"),
			[]rollout.Cluster{
				is("c1", rollout.Progressing, 20*time.Minute),
				{Name: "c2", Status: rollout.Failed, Since: before.Add(-5 * time.Minute)},
			},
			rollout.Plan{Start: []string{"c3", "c4"}, Waiting: []string{"c5", "c6"}, TimedOut: []string{"c1", "c2"}},
		},
		"out of time since": {
			progressive(config("5m", "0", 0), "2"),
			[]rollout.Cluster{
				{Name: "c1", Status: rollout.Progressing, Since: before.Add(-5*time.Minute + time.Second)},
			},
			rollout.Plan{Waiting: []string{"c2", "c3", "c4", "c5", "c6"}, TimedOut: []string{"c1"}, Breach: true},
		},
		"failed by then, without a deadline": {
			progressive(config("", "0", 0), "1"),
			[]rollout.Cluster{
				{Name: "c1", Status: rollout.Failed, Since: before},
			},
			rollout.Plan{Start: []string{"c2"}, InFlight: []string{"c1"}, Waiting: []string{"c3", "c4", "c5", "c6"}},
		},
		"failed since": {
			progressive(config("", "0", 0), "1"), []rollout.Cluster{{Name: "c1", Status: rollout.Failed, Since: after}},
			rollout.Plan{InFlight: []string{"c1"}, Waiting: []string{"c2", "c3", "c4", "c5", "c6"}, Breach: true},
		},
		"a mandatory group is passed": {
			perGroup(config("5m", "0", 0), named("a")),
			[]rollout.Cluster{
				is("c1", rollout.Progressing, time.Hour),
				is("c2", rollout.Succeeded, time.Hour),
			},
			rollout.Plan{
				Start:    []string{"c3", "c4"},
				Done:     []string{"c2"},
				Waiting:  []string{"c5", "c6"},
				TimedOut: []string{"c1"},
			},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s, err := rollout.Parse(c.strategy)
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(c.want, s.Resumed(before).Plan(three(), c.clusters, now)))
		})
	}
}

// The rollout of Open Cluster Management's tutorial: two canary groups, then a quarter of
// the others at a time, five minutes of soaking, ten until the deadline, two failures.
func TestTheRolloutOfTheTutorial(t *testing.T) {
	strategy, err := rollout.Parse(progressive(config("10m", "2", 5*time.Minute), "25%", named("prod-canary-west"), named("prod-canary-east")))
	require.NoError(t, err)
	groups := []rollout.Group{
		{
			Name:     "prod-canary-west",
			Index:    0,
			Clusters: []string{"west"},
		}, {
			Name:     "prod-canary-east",
			Index:    1,
			Clusters: []string{"east"},
		},
		{Index: 2, Clusters: numbered(0, 10)}, {Index: 3, Clusters: numbered(10, 20)},
	}
	clock, clusters := now, map[string]rollout.Cluster{}
	plan := func() rollout.Plan {
		var list []rollout.Cluster
		for _, c := range clusters {
			list = append(list, c)
		}
		return strategy.Plan(groups, list, clock)
	}
	set := func(status rollout.Status, names ...string) {
		for _, name := range names {
			clusters[name] = rollout.Cluster{Name: name, Status: status, Since: clock}
		}
	}
	require.Equal(t, []string{"west"}, plan().Start)
	set(rollout.Succeeded, "west")
	require.Empty(t, plan().Start, "the canary soaks")
	require.Equal(t, 5*time.Minute, plan().Recheck)
	clock = clock.Add(5 * time.Minute)
	require.Equal(t, []string{"east"}, plan().Start)
	set(rollout.Succeeded, "east")
	clock = clock.Add(5 * time.Minute)
	require.Equal(t, numbered(0, 5), plan().Start, "a quarter of twenty")
	set(rollout.Progressing, numbered(0, 5)...)
	require.Empty(t, plan().Start)
	set(rollout.Succeeded, numbered(0, 3)...)
	set(rollout.Failed, numbered(3, 5)...)
	clock = clock.Add(5 * time.Minute)
	require.Equal(t, numbered(5, 8), plan().Start, "two failures are tolerated, and hold their places")
	set(rollout.Progressing, numbered(5, 8)...)
	clock = clock.Add(5 * time.Minute)
	require.Equal(t, numbered(3, 5), plan().TimedOut)
	require.Equal(t, numbered(8, 10), plan().Start, "who is out of time makes room")
	set(rollout.Failed, numbered(8, 9)...)
	require.True(t, plan().Breach, "three failures are too many")
	require.Empty(t, plan().Start)
	set(rollout.Succeeded, numbered(3, 4)...)
	require.False(t, plan().Breach, "a cluster that recovers lets the rollout go on")
}

// numbered returns the names of the clusters from one number to before another.
func numbered(from, to int) []string {
	var out []string
	for i := from; i < to; i++ {
		out = append(out, fmt.Sprintf("p%02d", i))
	}
	return out
}
