// SPDX-License-Identifier: Apache-2.0

package decisions_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/placement/decisions"
	"github.com/kubectl-ocm/kubectl-ocm/internal/schedule"
	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
)

var owner = metav1.OwnerReference{APIVersion: clusterv1beta1.GroupVersion.String(), Kind: "Placement", Name: "p", UID: "p-uid"}

// world is what an API server would hold.
type world struct {
	objects map[string]*clusterv1beta1.PlacementDecision
	version int
}

func newWorld() *world { return &world{objects: map[string]*clusterv1beta1.PlacementDecision{}} }

func (w *world) list() []*clusterv1beta1.PlacementDecision {
	var out []*clusterv1beta1.PlacementDecision
	for _, name := range slices.Sorted(maps.Keys(w.objects)) {
		out = append(out, w.objects[name].DeepCopy())
	}
	return out
}

// apply makes one write as an API server does; the first write of a plan to an object
// must carry its version.
func (w *world) apply(t *testing.T, x decisions.Write, written map[string]bool) {
	t.Helper()
	o := w.objects[x.Name]
	if x.Kind == decisions.Create {
		require.Nil(t, o, "%s exists", x.Name)
		w.version++
		w.objects[x.Name] = &clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
			Name:            x.Name,
			UID:             types.UID(fmt.Sprint(w.version)),
			ResourceVersion: strconv.Itoa(w.version),
			Labels:          maps.Clone(x.Labels),
			OwnerReferences: x.Owners,
		}}
		written[x.Name] = true
		return
	}
	require.NotNil(t, o, "%s of %s, which does not exist", x.Kind, x.Name)
	if !written[x.Name] {
		require.Equal(t, o.ResourceVersion, x.Version, "%s of %s", x.Kind, x.Name)
		require.Equal(t, o.UID, x.UID)
	}
	written[x.Name] = true
	w.version++
	o.ResourceVersion = strconv.Itoa(w.version)
	switch x.Kind {
	case decisions.Status:
		require.LessOrEqual(t, len(x.Decisions), decisions.Max, "%s", x.Name)
		o.Status.Decisions = slices.Clone(x.Decisions)
	case decisions.Metadata:
		maps.Copy(o.Labels, x.Labels)
		if x.Owners != nil {
			o.OwnerReferences = x.Owners
		}
	case decisions.Delete:
		delete(w.objects, x.Name)
	}
}

// union is what a reader of the decisions of the placement finds.
func (w *world) union() map[string]bool {
	out := map[string]bool{}
	for _, o := range w.objects {
		if o.Labels[clusterv1beta1.LabelPlacement] == "p" {
			for _, d := range o.Status.Decisions {
				out[d.ClusterName] = true
			}
		}
	}
	return out
}

func group(name string, clusters ...string) schedule.Group {
	g := schedule.Group{Name: name}
	for _, c := range clusters {
		g.Clusters = append(g.Clusters, clusterv1beta1.ClusterDecision{ClusterName: c})
	}
	return g
}

// numbered returns clusters by number.
func numbered(from, to int) []string {
	var out []string
	for i := from; i < to; i++ {
		out = append(out, fmt.Sprintf("c%04d", i))
	}
	return out
}

func wanted(groups ...schedule.Group) decisions.Wanted {
	return decisions.Wanted{Owner: owner, Groups: groups}
}

// carry makes all writes of a plan, and returns them as "kind name".
func (w *world) carry(t *testing.T, want decisions.Wanted) []string {
	t.Helper()
	out := []string{}
	written := map[string]bool{}
	for _, x := range decisions.Make(want, w.list()).Writes {
		w.apply(t, x, written)
		out = append(out, string(x.Kind)+" "+x.Name)
	}
	return out
}

// show prints the world as "name[group index]: clusters".
func (w *world) show() []string {
	var out []string
	for _, o := range w.list() {
		line := fmt.Sprintf("%s[%s %s]", o.Name, o.Labels[clusterv1beta1.LabelDecisionGroupName], o.Labels[clusterv1beta1.LabelDecisionGroupIndex])
		if len(o.Status.Decisions) > 4 {
			list := o.Status.Decisions
			line += fmt.Sprintf(" %d from %s to %s", len(list), list[0].ClusterName, list[len(list)-1].ClusterName)
		} else {
			for _, d := range o.Status.Decisions {
				line += " " + d.ClusterName
			}
		}
		out = append(out, line)
	}
	return out
}

func TestObjectsOfGroups(t *testing.T) {
	for what, tc := range map[string]struct {
		want  decisions.Wanted
		shown []string
	}{
		"nothing selected is one empty object": {wanted(), []string{"p-decision-1[ 0]"}},
		"ten clusters": {
			wanted(group("", numbered(0, 10)...)),
			[]string{"p-decision-1[ 0] 10 from c0000 to c0009"},
		},
		"one more than an object holds": {wanted(group("", numbered(0, 101)...)),
			[]string{"p-decision-1[ 0] 100 from c0000 to c0099", "p-decision-2[ 0] c0100"}},
		"named groups and the rest": {wanted(group("canary", "c3"), group("canary", "c4"), group("", "c1"), group("", "c2")),
			[]string{"p-decision-1[canary 0] c3", "p-decision-2[canary 1] c4", "p-decision-3[ 2] c1", "p-decision-4[ 3] c2"}},
		"two named groups": {wanted(group("group1", "c1", "c2"), group("group2", "c3")),
			[]string{"p-decision-1[group1 0] c1 c2", "p-decision-2[group2 1] c3"}},
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld()
			w.carry(t, tc.want)
			require.Empty(t, cmp.Diff(tc.shown, w.show()))
			require.Empty(t, w.carry(t, tc.want), "a second plan writes nothing")
			for _, o := range w.list() {
				require.Equal(t, []metav1.OwnerReference{owner}, o.OwnerReferences)
			}
		})
	}
}

func TestWritesOfChanges(t *testing.T) {
	many := func(n int) decisions.Wanted { return wanted(group("", numbered(0, n)...)) }
	for what, tc := range map[string]struct {
		before, after decisions.Wanted
		spoil         func(*world)
		writes, shown []string
	}{
		"nothing changes": {before: many(128), after: many(128), writes: []string{},
			shown: []string{"p-decision-1[ 0] 100 from c0000 to c0099", "p-decision-2[ 0] 28 from c0100 to c0127"}},
		"128 become 10": {before: many(128), after: many(10), writes: []string{"status p-decision-1", "delete p-decision-2"},
			shown: []string{"p-decision-1[ 0] 10 from c0000 to c0009"}},
		"128 become none": {
			before: many(128),
			after:  wanted(),
			writes: []string{"status p-decision-1", "delete p-decision-2"},
			shown:  []string{"p-decision-1[ 0]"},
		},
		"the first cluster of many is new: one write": {
			before: wanted(group("", numbered(1, 128)...)),
			after:  many(128),
			writes: []string{"status p-decision-2"},
			shown:  []string{"p-decision-1[ 0] 100 from c0001 to c0100", "p-decision-2[ 0] 28 from c0000 to c0127"},
		},
		"a cluster for another: one write": {before: wanted(group("", numbered(1, 128)...)), after: wanted(group(
			"", append(numbered(2, 128), "c9999")...,
		)), writes: []string{"status p-decision-1"},
			shown: []string{"p-decision-1[ 0] 100 from c0002 to c9999", "p-decision-2[ 0] 27 from c0101 to c0127"}},
		"groups move up: objects that gain clusters are written first": {
			before: wanted(group("", "b"), group("", "c"), group("", "d")),
			after: wanted(
				group("", "a"), group("", "b"), group("", "c"), group("", "d"),
			),
			writes: []string{
				"create p-decision-4",
				"status p-decision-4",
				"status p-decision-3",
				"status p-decision-2",
				"status p-decision-1",
			},
			shown: []string{"p-decision-1[ 0] a", "p-decision-2[ 1] b", "p-decision-3[ 2] c", "p-decision-4[ 3] d"},
		},
		"two change places: one takes before it gives": {
			before: wanted(group("", "a"), group("", "b")),
			after:  wanted(group("", "b"), group("", "a")),
			writes: []string{"status p-decision-1", "status p-decision-2", "status p-decision-1"},
			shown:  []string{"p-decision-1[ 0] b", "p-decision-2[ 1] a"},
		},
		"two full ones change places by a third": {
			before: wanted(group("x", numbered(0, 100)...), group("y", numbered(100, 200)...)),
			after:  wanted(group("x", numbered(100, 200)...), group("y", numbered(0, 100)...)),
			writes: []string{
				"create p-decision-3",
				"status p-decision-3",
				"status p-decision-1",
				"status p-decision-2",
				"delete p-decision-3",
			},
			shown: []string{"p-decision-1[x 0] 100 from c0100 to c0199", "p-decision-2[y 1] 100 from c0000 to c0099"}},
		"a wrong label, and an object that is missing": {before: many(128), after: many(128), writes: []string{
			"create p-decision-2",
			"status p-decision-2",
			"metadata p-decision-1",
		},
			spoil: func(w *world) {
				w.objects["p-decision-1"].Labels[clusterv1beta1.LabelDecisionGroupName] = "fake"
				delete(w.objects, "p-decision-2")
			},
			shown: []string{"p-decision-1[ 0] 100 from c0000 to c0099", "p-decision-2[ 0] 28 from c0100 to c0127"}},
		"an object that readers do not find is filled before it is shown": {before: many(3), after: many(2), writes: []string{
			"status p-decision-1",
			"metadata p-decision-1",
		},
			spoil: func(w *world) { w.objects["p-decision-1"].Labels = map[string]string{} },
			shown: []string{"p-decision-1[ 0] c0000 c0001"}},
		"a foreign object with the label is deleted last": {
			before: wanted(),
			after:  many(2),
			writes: []string{"status p-decision-1", "delete other"},
			spoil: func(w *world) {
				w.objects["other"] = &clusterv1beta1.PlacementDecision{
					ObjectMeta: metav1.ObjectMeta{
						Name:            "other",
						UID:             "o",
						ResourceVersion: "1",
						Labels:          map[string]string{clusterv1beta1.LabelPlacement: "p"},
					},
					Status: clusterv1beta1.PlacementDecisionStatus{Decisions: group("", "c0001").Clusters},
				}
			},
			shown: []string{"p-decision-1[ 0] c0000 c0001"},
		},
		"the owner is a former placement of the name": {
			before: many(2),
			after:  many(2),
			writes: []string{"metadata p-decision-1"},
			spoil: func(w *world) {
				w.objects["p-decision-1"].OwnerReferences = []metav1.OwnerReference{{Kind: "Placement", Name: "p", UID: "former"}}
			},
			shown: []string{"p-decision-1[ 0] c0000 c0001"},
		},
		"others wrote more than an object may hold": {before: many(2), after: many(120), writes: []string{
			"create p-decision-2",
			"status p-decision-2",
			"status p-decision-1",
		},
			spoil: func(w *world) { w.objects["p-decision-1"].Status.Decisions = group("", numbered(0, 110)...).Clusters },
			shown: []string{"p-decision-1[ 0] 100 from c0000 to c0099", "p-decision-2[ 0] 20 from c0100 to c0119"}},
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld()
			w.carry(t, tc.before)
			if tc.spoil != nil {
				tc.spoil(w)
			}
			require.Empty(t, cmp.Diff(tc.writes, w.carry(t, tc.after)))
			require.Empty(t, cmp.Diff(tc.shown, w.show()))
			require.Empty(t, w.carry(t, tc.after), "a second plan writes nothing")
		})
	}
}

func TestLabelsAndOwnersOfOthersStay(t *testing.T) {
	w := newWorld()
	w.carry(t, wanted(group("", "a")))
	o := w.objects["p-decision-1"]
	o.Labels["team"] = "x"
	o.Labels[clusterv1beta1.LabelDecisionGroupIndex] = "7"
	o.OwnerReferences = []metav1.OwnerReference{{
		Kind: "Placement",
		Name: "p",
		UID:  "former",
	}, {
		Kind: "ConfigMap",
		Name: "mine",
		UID:  "m",
	}}
	w.carry(t, wanted(group("", "a")))
	require.Equal(t, "x", o.Labels["team"])
	require.Equal(t, "0", o.Labels[clusterv1beta1.LabelDecisionGroupIndex])
	require.Equal(t, []metav1.OwnerReference{owner, {Kind: "ConfigMap", Name: "mine", UID: "m"}}, o.OwnerReferences)
}

// TestFourThousandClusters counts the requests for a large placement; the status of the
// placement is one more.
func TestFourThousandClusters(t *testing.T) {
	w := newWorld()
	require.Len(t, w.carry(t, wanted(group("", numbered(0, 4000)...))), 80)
	require.Len(t, w.objects, 40)
	require.Len(t, w.carry(t, wanted(group("", numbered(0, 3999)...))), 1, "one cluster less is one write")
}

func TestDecisionsByScoreKeepTheirOrder(t *testing.T) {
	w := newWorld()
	best := numbered(0, 150)
	slices.Reverse(best)
	want := wanted(group("", best...))
	want.Ordered = true
	for i := range want.Groups[0].Clusters {
		score := int64(i)
		want.Groups[0].Clusters[i].Score = &score
	}
	w.carry(t, want)
	require.Equal(t,
		[]string{"p-decision-1[ 0] 100 from c0149 to c0050", "p-decision-2[ 0] 50 from c0049 to c0000"}, w.show())
	other := int64(99)
	want.Groups[0].Clusters[120].Score = &other
	require.Equal(t, []string{"status p-decision-2"}, w.carry(t, want), "another score is another decision")
}

// Clusters that are kept stay in their objects and order, even if nothing requires that
// order; removing a cluster costs one write.
func TestDecisionsThatAreKeptKeepTheirOrder(t *testing.T) {
	w := newWorld()
	best := numbered(0, 150)
	slices.Reverse(best)
	want := wanted(group("", best...))
	want.Ordered = true
	w.carry(t, want)
	before := w.show()
	for _, ordered := range []bool{true, false} {
		want.Keep, want.Ordered = true, ordered
		require.Empty(t, w.carry(t, want))
	}
	require.Equal(t, before, w.show())
	want.Groups[0].Clusters = want.Groups[0].Clusters[1:]
	require.Equal(t, []string{"status p-decision-1"}, w.carry(t, want))
	require.Equal(t,
		[]string{"p-decision-1[ 0] 99 from c0148 to c0050", "p-decision-2[ 0] 50 from c0049 to c0000"}, w.show())
}

func TestNumber(t *testing.T) {
	for name, n := range map[string]int{
		"p-decision-1":  1,
		"p-decision-40": 40,
		"p-decision-01": 0,
		"p-decision-0":  0,
		"p-decision--1": 0,
		"p-decision-":   0,
		"q-decision-1":  0,
		"p-decision-x":  0,
	} {
		require.Equal(t, n, decisions.Number("p", name), name)
	}
}
