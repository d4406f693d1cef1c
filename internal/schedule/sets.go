// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kubectl-ocm/kubectl-ocm/internal/excerpt"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1beta2 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta2"
)

// set is a ManagedClusterSet with its members.
type set struct {
	name string
	how  clusterv1beta2.ManagedClusterSelector
	// selector is nil for sets whose members carry the label of the set.
	selector labels.Selector
	// problem is why the set has no members; empty if it may have some.
	problem string
	members bits
}

// namespace holds the bindings and placements of a namespace.
type namespace struct {
	bindings   map[string]*clusterv1beta2.ManagedClusterSetBinding
	placements map[*placement]struct{}
	// bound are the sets that exist and are bound, sorted.
	bound []string
}

// newSet parses the selector of a set.
func newSet(object *clusterv1beta2.ManagedClusterSet) *set {
	s := &set{name: object.Name, how: object.Spec.ClusterSelector}
	switch s.how.SelectorType {
	case "", clusterv1beta2.SelectorTypeExclusiveClusterSetLabel, clusterv1beta2.SelectorTypeLegacyClusterSetLabel:
	case clusterv1beta2.SelectorTypeLabelSelector:
		made, err := metav1.LabelSelectorAsSelector(s.how.LabelSelector)
		if err != nil {
			s.problem = "spec.clusterSelector.labelSelector: " + excerpt.Within(err.Error(), 3*maxQuoted)
			made = labels.Nothing()
		}
		s.selector = made
	default:
		s.selector = labels.Nothing()
		s.problem = fmt.Sprintf("spec.clusterSelector.selectorType %s is not known: use ExclusiveClusterSetLabel or LabelSelector", quoted(s.how.SelectorType))
	}
	return s
}

// has reports whether a cluster with those labels is a member.
func (s *set) has(of map[string]string) bool {
	if s.selector == nil {
		return of[clusterv1.LabelClusterSet] == s.name
	}
	return s.selector.Matches(labels.Set(of))
}

// SetClusterSet records a new or changed ManagedClusterSet. Only its selector matters.
func (s *Scheduler) SetClusterSet(object *clusterv1beta2.ManagedClusterSet) {
	old := s.sets[object.Name]
	if old != nil && reflect.DeepEqual(old.how, object.Spec.ClusterSelector) {
		return
	}
	if old != nil {
		s.dropSet(old)
	}
	now := newSet(object)
	s.sets[now.name] = now
	if now.selector != nil {
		s.selecting[now] = struct{}{}
	}
	if now.problem != "" {
		s.malformed[now] = struct{}{}
	}
	for _, c := range s.clusters {
		if c.object != nil && now.has(c.object.Labels) {
			now.members.set(c.slot)
			c.sets = append(c.sets, now)
		}
	}
	s.resortBound(now.name)
	s.subscribers(now, func(p *placement) {
		p.forgetAll(now.members)
		s.touch(p)
	})
}

// DeleteClusterSet records that a ManagedClusterSet is gone.
func (s *Scheduler) DeleteClusterSet(name string) {
	if of := s.sets[name]; of != nil {
		s.subscribers(of, s.touch)
		s.dropSet(of)
		s.resortBound(name)
	}
}

func (s *Scheduler) dropSet(of *set) {
	for slot := range of.members.all() {
		c := s.slots[slot]
		c.sets = slices.DeleteFunc(c.sets, func(one *set) bool { return one == of })
	}
	delete(s.selecting, of)
	delete(s.malformed, of)
	delete(s.sets, of.name)
}

// resortBound calls resort for the namespaces that are bound to a set.
func (s *Scheduler) resortBound(set string) {
	for in := range s.boundIn[set] {
		s.resort(s.namespaces[in])
	}
}

// resort finds the sets that exist and are bound. The condition of every placement
// reports whether there is one at all.
func (s *Scheduler) resort(n *namespace) {
	before := len(n.bound)
	n.bound = nil
	for _, set := range slices.Sorted(maps.Keys(n.bindings)) {
		if s.sets[set] != nil && binds(n.bindings[set]) {
			n.bound = append(n.bound, set)
		}
	}
	if (before == 0) != (len(n.bound) == 0) {
		for p := range n.placements {
			s.touch(p)
		}
	}
}

// subscribers calls visit with the placements that select from a set.
func (s *Scheduler) subscribers(of *set, visit func(*placement)) {
	for in := range s.boundIn[of.name] {
		for p := range s.namespaces[in].placements {
			if p.selectsFrom(of.name) {
				visit(p)
			}
		}
	}
}

// subscribes reports whether a placement selects from a set.
func (s *Scheduler) subscribes(p *placement, of *set) bool {
	_, bound := s.boundIn[of.name][p.key.Namespace]
	return bound && p.selectsFrom(of.name)
}

func (s *Scheduler) namespace(name string) *namespace {
	n := s.namespaces[name]
	if n == nil {
		n = &namespace{bindings: map[string]*clusterv1beta2.ManagedClusterSetBinding{}, placements: map[*placement]struct{}{}}
		s.namespaces[name] = n
	}
	return n
}

func (s *Scheduler) tidyNamespace(name string, n *namespace) {
	if len(n.bindings) == 0 && len(n.placements) == 0 {
		delete(s.namespaces, name)
	}
}

// binds reports whether a binding is valid for the set of its name. Admission ensures
// that; a binding that bypassed admission binds nothing.
func binds(b *clusterv1beta2.ManagedClusterSetBinding) bool {
	return b.Spec.ClusterSet == "" || b.Spec.ClusterSet == b.Name
}

// SetBinding records a new or changed ManagedClusterSetBinding.
func (s *Scheduler) SetBinding(object *clusterv1beta2.ManagedClusterSetBinding) {
	n := s.namespace(object.Namespace)
	n.bindings[object.Name] = object
	s.bind(Key{Namespace: object.Namespace, Name: object.Name}, binds(object))
}

// DeleteBinding records that a ManagedClusterSetBinding is gone.
func (s *Scheduler) DeleteBinding(key Key) {
	n := s.namespaces[key.Namespace]
	if n == nil || n.bindings[key.Name] == nil {
		return
	}
	delete(n.bindings, key.Name)
	s.bind(key, false)
	s.tidyNamespace(key.Namespace, n)
}

// bind records whether a namespace is bound to the set of a name.
func (s *Scheduler) bind(key Key, good bool) {
	in := s.boundIn[key.Name]
	if _, was := in[key.Namespace]; was == good {
		return
	}
	if good {
		if in == nil {
			in = map[string]struct{}{}
			s.boundIn[key.Name] = in
		}
		in[key.Namespace] = struct{}{}
	} else if delete(in, key.Namespace); len(in) == 0 {
		delete(s.boundIn, key.Name)
	}
	n, of := s.namespaces[key.Namespace], s.sets[key.Name]
	if of == nil {
		return
	}
	s.resort(n)
	for p := range n.placements {
		if p.selectsFrom(key.Name) {
			p.forgetAll(of.members)
			s.touch(p)
		}
	}
}

// eligible returns the bound sets that a placement selects from, sorted.
func eligible(bound, wanted []string) []string {
	if len(wanted) == 0 {
		return bound
	}
	return slices.DeleteFunc(slices.Clone(bound), func(name string) bool { return !slices.Contains(wanted, name) })
}

// setReports reports on each set that is bound or wanted.
func (s *Scheduler) setReports(in string, wanted []string) []SetReport {
	n := s.namespaces[in]
	bindings := n.bindings
	names := slices.Concat(slices.Collect(maps.Keys(bindings)), wanted)
	slices.Sort(names)
	chosen := eligible(n.bound, wanted)
	var out []SetReport
	for _, name := range slices.Compact(names) {
		r := SetReport{Name: name, Eligible: slices.Contains(chosen, name)}
		if b := bindings[name]; b != nil {
			r.Bound = binds(b)
			if !r.Bound {
				r.Problem = fmt.Sprintf("the binding %s names the set %s in spec.clusterSet: both must be the same", name, b.Spec.ClusterSet)
			}
		}
		if of := s.sets[name]; of != nil {
			r.Exists, r.Members = true, of.members.count()
			if of.problem != "" {
				r.Problem = of.problem
			}
		}
		out = append(out, r)
	}
	return out
}
