// SPDX-License-Identifier: Apache-2.0

package rollout_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/internal/rollout"
	clusterv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1alpha1"
)

// world is a random placement, strategy and time.
type world struct {
	spec     clusterv1alpha1.RolloutStrategy
	groups   []rollout.Group
	clusters []rollout.Cluster
}

func newWorld(r *rand.Rand) world {
	var w world
	next := 0
	for i := range r.IntN(5) {
		g := rollout.Group{Index: i, Name: []string{"", "a", "b"}[r.IntN(3)]}
		for range r.IntN(5) {
			g.Clusters = append(g.Clusters, fmt.Sprintf("c%02d", next))
			next++
		}
		w.groups = append(w.groups, g)
	}
	statuses := []rollout.Status{rollout.ToApply, rollout.Progressing, rollout.Succeeded, rollout.Failed, rollout.Skip, "odd"}
	for i := range next + r.IntN(3) {
		if r.IntN(3) > 0 {
			w.clusters = append(w.clusters, is(fmt.Sprintf("c%02d", i), statuses[r.IntN(len(statuses))], time.Duration(r.IntN(120))*time.Second))
		}
	}
	c := config([]string{"None", "0s", "30s", "1m"}[r.IntN(4)], []string{"0", "1", "50%", "99"}[r.IntN(4)], time.Duration(r.IntN(60))*time.Second)
	var mandatory []clusterv1alpha1.MandatoryDecisionGroup
	for range r.IntN(3) {
		mandatory = append(mandatory, []clusterv1alpha1.MandatoryDecisionGroup{named("a"), named("b"), at(int32(r.IntN(6)))}[r.IntN(3)])
	}
	switch r.IntN(3) {
	case 0:
		w.spec = all(c.ProgressDeadline)
	case 1:
		w.spec = progressive(c, []string{"", "1", "2", "30%"}[r.IntN(4)], mandatory...)
	default:
		w.spec = perGroup(c, mandatory...)
	}
	return w
}

func TestPlanOfAnyWorld(t *testing.T) {
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 1))
		w := newWorld(r)
		s, err := rollout.Parse(w.spec)
		require.NoError(t, err)
		p := s.Plan(w.groups, w.clusters, now)

		var members []string
		for _, g := range w.groups {
			members = append(members, g.Clusters...)
		}
		lists := slices.Concat(p.Start, p.InFlight, p.Waiting, p.Done, p.TimedOut, p.Skipped)
		require.ElementsMatch(t, members, lists, "seed %d: every cluster is in exactly one list", seed)
		for _, name := range p.Removed {
			require.NotContains(t, members, name, "seed %d", seed)
		}
		if p.Breach {
			require.NotEqual(t, clusterv1alpha1.RolloutTypeAll, w.spec.Type, "seed %d", seed)
			require.NotEmpty(t, slices.Concat(p.InFlight, p.TimedOut), "seed %d: somebody failed", seed)
		}

		r.Shuffle(len(w.groups), func(i, j int) { w.groups[i], w.groups[j] = w.groups[j], w.groups[i] })
		r.Shuffle(len(w.clusters), func(i, j int) { w.clusters[i], w.clusters[j] = w.clusters[j], w.clusters[i] })
		for _, g := range w.groups {
			r.Shuffle(len(g.Clusters), func(i, j int) { g.Clusters[i], g.Clusters[j] = g.Clusters[j], g.Clusters[i] })
		}
		require.Empty(t, cmp.Diff(p, s.Plan(w.groups, w.clusters, now)), "seed %d: order is no matter", seed)

		if p.Recheck > time.Nanosecond {
			require.Empty(t, cmp.Diff(lists, flat(s.Plan(w.groups, w.clusters, now.Add(p.Recheck-time.Nanosecond)))), "seed %d: nothing changes before Recheck", seed)
		}
	}
}

func flat(p rollout.Plan) []string {
	return slices.Concat(p.Start, p.InFlight, p.Waiting, p.Done, p.TimedOut, p.Skipped)
}

// With any strategy, a rollout whose clusters all succeed ends, never has more clusters
// in flight than allowed, and completes mandatory groups before others start.
func TestAnyRolloutThatSucceedsEnds(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 2))
		w := newWorld(r)
		s, err := rollout.Parse(w.spec)
		require.NoError(t, err)
		total := 0
		for _, g := range w.groups {
			total += len(g.Clusters)
		}
		clock, clusters := now, map[string]rollout.Cluster{}
		for round := 0; ; round++ {
			require.Less(t, round, 20*(total+1), "seed %d: it does not end", seed)
			var list []rollout.Cluster
			for _, c := range clusters {
				list = append(list, c)
			}
			p := s.Plan(w.groups, list, clock)
			require.False(t, p.Breach, "seed %d", seed)
			if len(p.Done) == total {
				break
			}
			if spec := w.spec.Progressive; spec != nil && len(spec.MandatoryDecisionGroups.MandatoryDecisionGroups) == 0 && spec.MaxConcurrency != nil {
				require.LessOrEqual(t, len(p.Start)+len(p.InFlight), limit(spec.MaxConcurrency.String(), total), "seed %d", seed)
			}
			for _, name := range p.Start {
				clusters[name] = rollout.Cluster{Name: name, Status: rollout.Succeeded, Since: clock}
			}
			clock = clock.Add(10 * time.Second)
		}
	}
}

func limit(concurrency string, total int) int {
	switch concurrency {
	case "1":
		return 1
	case "2":
		return 2
	default:
		return (total*30 + 99) / 100
	}
}

func FuzzParse(f *testing.F) {
	f.Add("Progressive", "10m", "25%", "2", int64(time.Minute))
	f.Add("All", "None", "", "", int64(0))
	f.Add("ProgressivePerGroup", "1h30m", "0", "100%", int64(-1))
	f.Fuzz(func(t *testing.T, kind, deadline, concurrency, failures string, soak int64) {
		c := config(deadline, failures, time.Duration(soak))
		spec := progressive(c, concurrency)
		spec.ProgressivePerGroup, spec.All = perGroup(c).ProgressivePerGroup, &clusterv1alpha1.RolloutAll{RolloutConfig: c}
		spec.Type = clusterv1alpha1.RolloutType(kind)
		s, err := rollout.Parse(spec)
		if err != nil {
			return
		}
		p := s.Plan(three(), nil, now)
		require.Len(t, flat(p), 6)
		require.NotEmpty(t, p.Start, "what can be parsed can begin")
	})
}
