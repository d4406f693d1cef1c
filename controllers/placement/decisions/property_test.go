// SPDX-License-Identifier: Apache-2.0

package decisions_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/placement/decisions"
	"github.com/kubectl-ocm/kubectl-ocm/internal/schedule"
	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
)

const (
	// seed of the random histories.
	seed      = 20261122
	histories = 150
	turns     = 12
)

// lot draws what a placement wants next: few or many clusters, in few groups or many,
// close to what it wanted before or far from it.
type lot struct {
	*rand.Rand
	clusters []string
	size     int
	names    []string
	ordered  bool
	keep     bool
}

func (l *lot) next() decisions.Wanted {
	switch l.IntN(5) {
	case 0:
		l.size = 1 + l.IntN(130)
		l.ordered, l.keep = l.IntN(3) == 0, l.IntN(4) == 0
	case 1:
		l.names = []string{"canary", "east", "west", "late"}[:l.IntN(5)]
	case 2:
		l.Shuffle(len(l.clusters), func(i, j int) { l.clusters[i], l.clusters[j] = l.clusters[j], l.clusters[i] })
	}
	for range l.IntN(8) { // the selection changes a little
		i, j := l.IntN(len(l.clusters)), l.IntN(len(l.clusters))
		l.clusters[i], l.clusters[j] = l.clusters[j], l.clusters[i]
	}
	count := len(l.clusters) * 3 / 4
	if l.IntN(4) == 0 {
		count = l.IntN(len(l.clusters))
	}
	chosen := slices.Clone(l.clusters[:count])
	want := decisions.Wanted{Owner: owner, Ordered: l.ordered, Keep: l.keep}
	part := len(chosen) / (len(l.names) + 1)
	for _, name := range append(slices.Clone(l.names), "") {
		own := chosen[:min(part, len(chosen))]
		if name == "" {
			own = chosen
		}
		chosen = chosen[len(own):]
		for members := range slices.Chunk(own, l.size) {
			if !l.ordered {
				members = slices.Sorted(slices.Values(members))
			}
			want.Groups = append(want.Groups, group(name, members...))
		}
	}
	return want
}

// spoil changes the objects as users may.
func (l *lot) spoil(w *world) {
	for _, name := range slices.Sorted(maps.Keys(w.objects)) {
		o := w.objects[name]
		switch l.IntN(25) {
		case 0:
			delete(w.objects, name)
		case 1:
			o.Status.Decisions = group("", l.clusters[:l.IntN(min(len(l.clusters), 150))]...).Clusters
		case 2:
			o.Labels[clusterv1beta1.LabelDecisionGroupIndex] = "99"
		case 3:
			delete(o.Labels, clusterv1beta1.LabelPlacement)
		case 4:
			foreign := *o
			foreign.Name, foreign.UID, foreign.Labels = "foreign-"+strconv.Itoa(l.IntN(3)), "f", maps.Clone(o.Labels)
			w.objects[foreign.Name] = &foreign
		}
	}
}

// sideBySide returns the writes of a plan in one of the orders in which they may be made.
func (l *lot) sideBySide(p decisions.Plan) []decisions.Write {
	if !p.Independent {
		return p.Writes
	}
	chains := map[string][]decisions.Write{}
	var turns []string
	for _, w := range p.Writes {
		chains[w.Name] = append(chains[w.Name], w)
		turns = append(turns, w.Name)
	}
	l.Shuffle(len(turns), func(i, j int) { turns[i], turns[j] = turns[j], turns[i] })
	out := make([]decisions.Write, 0, len(turns))
	for _, name := range turns {
		out, chains[name] = append(out, chains[name][0]), chains[name][1:]
	}
	return out
}

// TestNoClusterThatStaysIsEverMissing executes random histories of placements, each plan
// stopped after a random write, and checks after every single write.
func TestNoClusterThatStaysIsEverMissing(t *testing.T) {
	t.Logf("seed %d", seed)
	writes := 0
	for h := range histories {
		random := rand.New(rand.NewPCG(seed, uint64(h)))
		l := &lot{Rand: random, clusters: numbered(0, 1+random.IntN(450)), size: 1 + random.IntN(300)}
		w := newWorld()
		for turn := range turns {
			want := l.next()
			if l.IntN(3) == 0 {
				l.spoil(w)
			}
			for range 3 { // stopped twice, then to the end
				plan := decisions.Make(want, w.list())
				stop := len(plan.Writes)
				if stop > 0 && l.IntN(2) == 0 {
					stop = l.IntN(stop)
				}
				writes += w.follow(t, fmt.Sprintf("history %d, turn %d", h, turn), want, l.sideBySide(plan)[:stop])
			}
			writes += w.follow(t, fmt.Sprintf("history %d, turn %d", h, turn), want, l.sideBySide(decisions.Make(want, w.list())))
			w.check(t, fmt.Sprintf("history %d, turn %d", h, turn), want)
		}
	}
	t.Logf("%d writes", writes)
	require.Greater(t, writes, 10000, "the histories have to be worth it")
}

// follow makes the writes, and checks after each that every cluster that was there before
// and stays is still there.
func (w *world) follow(t *testing.T, at string, want decisions.Wanted, list []decisions.Write) int {
	t.Helper()
	before := w.union()
	var stays []string
	for _, g := range want.Groups {
		for _, d := range g.Clusters {
			if before[d.ClusterName] {
				stays = append(stays, d.ClusterName)
			}
		}
	}
	written := map[string]bool{}
	for i, x := range list {
		w.apply(t, x, written)
		now := w.union()
		for _, c := range stays {
			if !now[c] {
				require.Failf(t,
					"a cluster that stays is missing", "%s: %s after write %d of %d, %s %s", at, c, i+1, len(list), x.Kind, x.Name)
			}
		}
	}
	return len(list)
}

// check compares the objects with what was wanted.
func (w *world) check(t *testing.T, at string, want decisions.Wanted) {
	t.Helper()
	plan := decisions.Make(want, w.list())
	require.Empty(t, plan.Writes, "%s: a plan that was carried out leaves nothing to do", at)
	groups := want.Groups
	if len(groups) == 0 {
		groups = []schedule.Group{{}}
	}
	require.Len(t, plan.Objects, len(groups), at)
	n := 0
	for index, g := range groups {
		have := map[string]bool{}
		var order []string
		for _, name := range plan.Objects[index] {
			n++
			require.Equal(t, decisions.NameOf("p", n), name, at)
			o := w.objects[name]
			require.NotNil(t, o, "%s: %s", at, name)
			require.LessOrEqual(t, len(o.Status.Decisions), decisions.Max, at)
			require.Equal(t, "p", o.Labels[clusterv1beta1.LabelPlacement], at)
			require.Equal(t, g.Name, o.Labels[clusterv1beta1.LabelDecisionGroupName], at)
			require.Equal(t, strconv.Itoa(index), o.Labels[clusterv1beta1.LabelDecisionGroupIndex], at)
			for _, d := range o.Status.Decisions {
				require.False(t, have[d.ClusterName], "%s: %s stands twice in group %d", at, d.ClusterName, index)
				have[d.ClusterName] = true
				order = append(order, d.ClusterName)
			}
		}
		var wanted []string
		for _, d := range g.Clusters {
			wanted = append(wanted, d.ClusterName)
		}
		switch {
		case want.Keep: // in whatever order they were
			slices.Sort(order)
			slices.Sort(wanted)
		case !want.Ordered:
			slices.Sort(order)
		}
		require.Equal(t, wanted, order, at)
	}
	for name, o := range w.objects {
		if decisions.Number("p", name) > n || decisions.Number("p", name) == 0 {
			require.NotEqual(t, "p", o.Labels[clusterv1beta1.LabelPlacement], "%s: %s should be gone", at, name)
		}
	}
}

// FuzzSlicing varies the sizes of groups and the existing objects, within sizes that a
// fuzzing process on a busy machine handles in seconds.
func FuzzSlicing(f *testing.F) {
	f.Add(uint16(600), uint16(100), uint16(599), uint16(1), false, false)
	f.Add(uint16(101), uint16(101), uint16(0), uint16(7), true, false)
	f.Add(uint16(250), uint16(3), uint16(251), uint16(2), false, true)
	f.Fuzz(func(t *testing.T, many, size, then, thenSize uint16, ordered, keep bool) {
		w := newWorld()
		for _, part := range [][2]uint16{{many, size}, {then, thenSize}} {
			want := decisions.Wanted{Owner: owner, Ordered: ordered, Keep: keep}
			for members := range slices.Chunk(numbered(0, int(part[0]%700)), 1+int(part[1]%500)) {
				want.Groups = append(want.Groups, group("", members...))
			}
			w.follow(t, "fuzz", want, decisions.Make(want, w.list()).Writes)
			w.check(t, "fuzz", want)
		}
	})
}
