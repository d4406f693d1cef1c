// SPDX-License-Identifier: Apache-2.0

package decisions

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
)

// planner simulates the writes while it orders them.
type planner struct {
	owner  metav1.OwnerReference
	slices []slice
	have   map[string]clusterv1beta1.PlacementDecision
	// content is what each object holds after the writes so far.
	content map[string][]clusterv1beta1.ClusterDecision
	// seen holds the objects that readers find: those with the label.
	seen map[string]bool
	// holders counts the seen objects that hold a cluster.
	holders map[string]int
	// stays holds the clusters that were selected and still are.
	stays map[string]bool
	// spares are objects that were added to break a cycle.
	spares []string
	next   int
	writes []Write
}

func newPlanner(w Wanted, parts []slice, have map[string]clusterv1beta1.PlacementDecision) *planner {
	p := &planner{
		owner: w.Owner, slices: parts, have: have, content: map[string][]clusterv1beta1.ClusterDecision{},
		seen: map[string]bool{}, holders: map[string]int{}, stays: map[string]bool{}, next: len(parts) + 1,
	}
	for _, o := range have {
		p.next = max(p.next, Number(w.Owner.Name, o.Name)+1)
		p.content[o.Name] = o.Status.Decisions
		if o.Labels[clusterv1beta1.LabelPlacement] == w.Owner.Name {
			p.seen[o.Name] = true
			p.count(o.Status.Decisions, 1)
		}
	}
	for _, s := range parts {
		for _, d := range s.decisions {
			if p.holders[d.ClusterName] > 0 {
				p.stays[d.ClusterName] = true
			}
		}
	}
	return p
}

// count adds n to the holders of each cluster of one object.
func (p *planner) count(list []clusterv1beta1.ClusterDecision, n int) {
	for name := range names(list) {
		p.holders[name] += n
	}
}

func names(list []clusterv1beta1.ClusterDecision) map[string]bool {
	out := make(map[string]bool, len(list))
	for _, d := range list {
		out[d.ClusterName] = true
	}
	return out
}

// reveal makes objects that have a name of the placement, but not its label, visible to
// readers again: first their content, then the label.
func (p *planner) reveal() {
	for _, s := range p.slices {
		if _, exists := p.have[s.name]; !exists || p.seen[s.name] {
			continue
		}
		if !equal(p.content[s.name], s.decisions) {
			p.write(Write{Kind: Status, Name: s.name, Decisions: s.decisions})
		}
		p.metadata(s)
		p.seen[s.name] = true
		p.count(s.decisions, 1)
	}
}

// fill writes the content of objects, in an order that loses no cluster.
func (p *planner) fill() {
	var pending []slice
	for _, s := range p.slices {
		if _, exists := p.have[s.name]; !exists || !equal(p.content[s.name], s.decisions) {
			pending = append(pending, s)
		}
	}
	for len(pending) > 0 {
		at := slices.IndexFunc(pending, func(s slice) bool { return len(p.losses(s)) == 0 })
		if at < 0 {
			p.unlock(pending)
			continue
		}
		p.writeContent(pending[at])
		pending = slices.Delete(pending, at, at+1)
	}
}

// losses returns the clusters that stay selected and that no other object would hold if
// this one were written now.
func (p *planner) losses(s slice) []clusterv1beta1.ClusterDecision {
	after := names(s.decisions)
	var out []clusterv1beta1.ClusterDecision
	for _, d := range p.content[s.name] {
		if !after[d.ClusterName] && p.stays[d.ClusterName] && p.holders[d.ClusterName] == 1 {
			out = append(out, d)
		}
	}
	return out
}

// unlock breaks a cycle of objects each of which has to give up clusters before it can
// take others: one of them takes first, where there is room; otherwise a spare object,
// deleted afterwards, holds what it gives up.
func (p *planner) unlock(pending []slice) {
	for _, s := range pending {
		held := names(p.content[s.name])
		grown := slices.Clone(p.content[s.name])
		for _, d := range s.decisions {
			if !held[d.ClusterName] && p.holders[d.ClusterName] == 1 {
				grown = append(grown, d)
			}
		}
		if len(grown) <= Max && len(grown) > len(p.content[s.name]) {
			p.writeContent(slice{name: s.name, labels: s.labels, decisions: grown})
			return
		}
	}
	least := slices.MinFunc(pending, func(a, b slice) int { return len(p.losses(a)) - len(p.losses(b)) })
	spare := slice{name: NameOf(p.owner.Name, p.next), labels: least.labels, decisions: slices.Clip(p.losses(least))}
	p.next++
	p.spares = append(p.spares, spare.name)
	p.writeContent(spare)
}

// writeContent writes the content of an object, and creates the object first if it does
// not exist.
func (p *planner) writeContent(s slice) {
	if _, exists := p.have[s.name]; !exists && !p.seen[s.name] {
		p.writes = append(p.writes, Write{Kind: Create, Name: s.name, Labels: s.labels, Owners: []metav1.OwnerReference{p.owner}})
		p.seen[s.name] = true
		if len(s.decisions) == 0 {
			return
		}
	}
	p.count(p.content[s.name], -1)
	p.count(s.decisions, 1)
	p.write(Write{Kind: Status, Name: s.name, Decisions: s.decisions})
}

func (p *planner) write(w Write) {
	o := p.have[w.Name]
	w.UID, w.Version = o.UID, o.ResourceVersion
	if w.Kind == Status {
		p.content[w.Name] = w.Decisions
	}
	p.writes = append(p.writes, w)
}

// label fixes the metadata of objects that stay.
func (p *planner) label() {
	for _, s := range p.slices {
		p.metadata(s)
	}
}

// metadata sets the labels and owners of an existing object where they differ. It does so
// once.
func (p *planner) metadata(s slice) {
	o, exists := p.have[s.name]
	if !exists || slices.ContainsFunc(p.writes, func(w Write) bool { return w.Kind == Metadata && w.Name == s.name }) {
		return
	}
	w := Write{Kind: Metadata, Name: s.name, Owners: p.owners(o.OwnerReferences)}
	for key, value := range s.labels {
		if have, ok := o.Labels[key]; !ok || have != value {
			w.Labels = maps.Clone(s.labels)
		}
	}
	if w.Labels != nil || w.Owners != nil {
		p.write(w)
	}
}

// owners returns the owners that an object must get, or nil if they are right. References
// to a former placement of the same name would have the object garbage-collected.
func (p *planner) owners(have []metav1.OwnerReference) []metav1.OwnerReference {
	if slices.ContainsFunc(have, func(o metav1.OwnerReference) bool { return o.UID == p.owner.UID }) {
		return nil
	}
	out := []metav1.OwnerReference{p.owner}
	for _, o := range have {
		if o.Kind != p.owner.Kind && (o.Controller == nil || !*o.Controller) {
			out = append(out, o)
		}
	}
	return out
}

// remove deletes all other objects of the placement; by now every cluster is where it
// belongs.
func (p *planner) remove() {
	stay := map[string]bool{}
	for _, s := range p.slices {
		stay[s.name] = true
	}
	gone := p.spares
	for name := range p.seen {
		if !stay[name] && !slices.Contains(p.spares, name) {
			gone = append(gone, name)
		}
	}
	slices.Sort(gone)
	for _, name := range gone {
		p.write(Write{Kind: Delete, Name: name})
	}
}

// equal compares the content of objects; nil equals an empty list.
func equal(a, b []clusterv1beta1.ClusterDecision) bool {
	return slices.EqualFunc(a, b, func(x, y clusterv1beta1.ClusterDecision) bool {
		return x.ClusterName == y.ClusterName && x.Reason == y.Reason && ptr.Equal(x.Score, y.Score)
	})
}
