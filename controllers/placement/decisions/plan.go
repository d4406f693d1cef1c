// SPDX-License-Identifier: Apache-2.0

package decisions

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/internal/schedule"
	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
)

// Max is how many clusters one object can hold.
const Max = clusterv1beta1.MaxDecisionsPerObject

// Wanted is the desired content of the objects.
type Wanted struct {
	// Owner is the reference to the placement, with its name.
	Owner metav1.OwnerReference
	// Groups in the order of their indexes; no cluster is in two of them. None means one
	// empty group.
	Groups []schedule.Group
	// Ordered keeps the order of a group's clusters across all its objects. Without it
	// clusters stay in their objects, sorted by name within each.
	Ordered bool
	// Keep leaves clusters in their objects and in their order, whatever it is: the
	// decisions are those that exist already. It takes precedence over Ordered.
	Keep bool
}

// Kind of a write.
type Kind string

// Kinds of writes.
const (
	// Create makes an object with its labels and no decisions.
	Create Kind = "create"
	// Status replaces the decisions of an object.
	Status Kind = "status"
	// Metadata sets labels and owners of an object.
	Metadata Kind = "metadata"
	// Delete removes an object.
	Delete Kind = "delete"
)

// Write is one request.
type Write struct {
	Kind Kind
	Name string
	// UID and Version are preconditions: those of the object, empty for one that an
	// earlier write of the same plan creates. Once a plan has written an object, the
	// version of that write counts.
	UID     types.UID
	Version string
	// Labels are those to set by Create and Metadata. Others stay.
	Labels map[string]string
	// Owners are the complete list for Create and Metadata; nil leaves them.
	Owners []metav1.OwnerReference
	// Decisions are the complete list for Status.
	Decisions []clusterv1beta1.ClusterDecision
}

// Plan is a list of writes.
type Plan struct {
	// Writes are in the order in which they have to be made. If one fails, those after it
	// must not be made.
	Writes []Write
	// Independent is true when that holds only among the writes to one object: there is no
	// cluster that stays, and could be missing meanwhile.
	Independent bool
	// Objects are the names of the objects of each group, in order.
	Objects [][]string
}

// slice is the desired state of one object.
type slice struct {
	name      string
	labels    map[string]string
	decisions []clusterv1beta1.ClusterDecision
}

// NameOf returns the name of the n-th object of a placement, counted from 1.
func NameOf(placement string, n int) string { return placement + "-decision-" + strconv.Itoa(n) }

// Number returns the n of a name made by NameOf, and 0 for any other name.
func Number(placement, name string) int {
	text, ok := strings.CutPrefix(name, placement+"-decision-")
	if !ok {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || strconv.Itoa(n) != text {
		return 0
	}
	return n
}

// Make plans the writes that turn the existing objects into the wanted ones: those with the
// label of the placement, or with a name that the placement generates.
func Make(w Wanted, objects []*clusterv1beta1.PlacementDecision) Plan {
	have := map[string]clusterv1beta1.PlacementDecision{}
	for _, o := range objects {
		have[o.Name] = *o
	}
	parts, groups := split(w, have)
	p := newPlanner(w, parts, have)
	p.reveal()
	p.fill()
	p.label()
	p.remove()
	return Plan{Writes: p.writes, Independent: len(p.stays) == 0, Objects: groups}
}

// split distributes the clusters of the groups over objects.
func split(w Wanted, have map[string]clusterv1beta1.PlacementDecision) (out []slice, names [][]string) {
	groups := w.Groups
	if len(groups) == 0 {
		groups = []schedule.Group{{}}
	}
	n := 1
	for index, g := range groups {
		parts := slices.Collect(slices.Chunk(g.Clusters, Max))
		if len(parts) == 0 {
			parts = append(parts, nil)
		}
		var own []string
		for range parts {
			own = append(own, NameOf(w.Owner.Name, n))
			n++
		}
		if w.Keep || !w.Ordered {
			parts = settle(g.Clusters, own, have, w.Keep)
		}
		for i, name := range own {
			out = append(out, slice{name: name, labels: labels(w.Owner.Name, g.Name, index), decisions: parts[i]})
		}
		names = append(names, own)
	}
	return out, names
}

func labels(placement, group string, index int) map[string]string {
	return map[string]string{
		clusterv1beta1.LabelPlacement:          placement,
		clusterv1beta1.LabelDecisionGroupName:  group,
		clusterv1beta1.LabelDecisionGroupIndex: strconv.Itoa(index),
	}
}

// settle leaves clusters in the objects that hold them, and puts the others, by name,
// where there is room: first into objects that have to be written anyway. keep leaves the
// clusters within an object in their order.
func settle(
	all []clusterv1beta1.ClusterDecision, names []string, have map[string]clusterv1beta1.PlacementDecision, keep bool,
) [][]clusterv1beta1.ClusterDecision {
	rest := make(map[string]clusterv1beta1.ClusterDecision, len(all))
	for _, d := range all {
		rest[d.ClusterName] = d
	}
	out := make([][]clusterv1beta1.ClusterDecision, len(names))
	var touched, untouched []int
	for i, name := range names {
		o, exists := have[name]
		changes := !exists
		for _, old := range o.Status.Decisions {
			d, ok := rest[old.ClusterName]
			if !ok || len(out[i]) == Max {
				changes = true
				continue
			}
			delete(rest, old.ClusterName)
			out[i] = append(out[i], d)
		}
		if changes {
			touched = append(touched, i)
		} else {
			untouched = append(untouched, i)
		}
	}
	loose := slices.SortedFunc(maps.Values(rest), byName)
	for _, i := range append(touched, untouched...) {
		n := min(Max-len(out[i]), len(loose))
		out[i] = append(out[i], loose[:n]...)
		loose = loose[n:]
		if !keep {
			slices.SortFunc(out[i], byName)
		}
	}
	return out
}

func byName(a, b clusterv1beta1.ClusterDecision) int {
	return strings.Compare(a.ClusterName, b.ClusterName)
}
