// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"cmp"
	"reflect"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kubectl-ocm/kubectl-ocm/internal/manager"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1beta2 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta2"
)

// Listener holds the functions a loop wants to be called; nil functions are not called.
type Listener struct {
	// Object is called when a set's object is added, changed or removed.
	Object func(set string)
	// Presence is called when a set is added, starts being deleted, or is removed.
	Presence func(set string)
	// Namespaces is called when the managed namespaces a set wants have changed; a set being
	// deleted wants none.
	Namespaces func(set string)
	// Member is called when a cluster joins a set or leaves it. When a set is added or
	// removed, each of its members joins or leaves.
	Member func(set, cluster string)
	// Binding is called when a namespace is bound to, or unbound from, the set of that name,
	// whether or not the set exists.
	Binding func(namespace, set string)
}

// Index holds the membership of sets. Its methods are safe for concurrent use.
type Index struct {
	mu       sync.RWMutex
	clusters map[string]*cluster
	sets     map[string]*set
	// asking are the sets with a selector, by the label keys it uses.
	asking groups
	// labelled are the clusters by the value of their set label, including sets that do not
	// exist.
	labelled groups
	// bound are the sets a namespace is bound to; binding are the namespaces by set.
	bound, binding groups

	listeners []Listener
	// evaluated counts how often a selector was evaluated against a cluster.
	evaluated int
}

type names = sets.Set[string]

// groups are names by key; a group without names is dropped, and the empty key is ignored.
type groups map[string]names

func (g groups) add(key, name string) {
	if key == "" {
		return
	}
	if g[key] == nil {
		g[key] = names{}
	}
	g[key].Insert(name)
}

func (g groups) remove(key, name string) {
	if g[key].Delete(name); len(g[key]) == 0 {
		delete(g, key)
	}
}

type cluster struct {
	labels tags
	// sets are the sets the cluster is in, sorted.
	sets []string
}

type set struct {
	name    string
	spec    clusterv1beta2.ManagedClusterSelector
	how     selection
	invalid error
	// members are the members of a set with a selector; those of an exclusive set are in
	// Index.labelled.
	members    names
	namespaces []string
	deleting   bool
}

// newIndex makes an index that watches nothing; loops use New.
func newIndex() *Index {
	return &Index{
		clusters: map[string]*cluster{}, sets: map[string]*set{},
		asking: groups{}, labelled: groups{}, bound: groups{}, binding: groups{},
	}
}

// New makes the index for the loops of m.
func New(m *manager.Manager) *Index {
	x := newIndex()
	manager.Watch(m, &clusterv1.ManagedCluster{}, x.Cluster)
	manager.Watch(m, &clusterv1beta2.ManagedClusterSet{}, x.Set)
	manager.Watch(m, &clusterv1beta2.ManagedClusterSetBinding{}, x.Binding)
	return x
}

// Listen adds a listener; it must be called before the first event.
func (x *Index) Listen(l Listener) { x.listeners = append(x.listeners, l) }

// Cluster records a ManagedCluster; current is nil when it is gone.
func (x *Index) Cluster(old, current *clusterv1.ManagedCluster) {
	x.update(func(n *news) {
		if current == nil {
			x.dropCluster(n, old.Name)
		} else {
			x.putCluster(n, current.Name, tagsOf(current.Labels))
		}
	})
}

// Set records a ManagedClusterSet; current is nil when it is gone.
func (x *Index) Set(old, current *clusterv1beta2.ManagedClusterSet) {
	x.update(func(n *news) {
		if current == nil {
			x.dropSet(n, old.Name)
		} else {
			x.putSet(n, current)
		}
	})
}

// Binding records a ManagedClusterSetBinding; current is nil when it is gone. A binding that
// is being deleted, or whose name is not that of its set, binds nothing.
func (x *Index) Binding(old, current *clusterv1beta2.ManagedClusterSetBinding) {
	x.update(func(n *news) {
		b := cmp.Or(current, old)
		x.setBinding(n, b.Namespace, b.Name, current != nil && b.DeletionTimestamp == nil && b.Spec.ClusterSet == b.Name)
	})
}

func (x *Index) dropCluster(n *news, name string) {
	c := x.clusters[name]
	if c == nil {
		return
	}
	for _, s := range slices.Clone(c.sets) {
		x.leave(n, x.sets[s], name)
	}
	x.labelled.remove(c.labels.Get(clusterv1.LabelClusterSet), name)
	delete(x.clusters, name)
}

// putCluster stores a cluster's labels and updates the sets they affect.
func (x *Index) putCluster(n *news, name string, now tags) {
	c := x.clusters[name]
	fresh := c == nil
	if fresh {
		c = &cluster{}
		x.clusters[name] = c
	}
	before := c.labels
	c.labels = now
	if from, to := before.Get(clusterv1.LabelClusterSet), now.Get(clusterv1.LabelClusterSet); from != to {
		if s := x.sets[from]; s != nil && s.how.Exclusive {
			x.leave(n, s, name)
		}
		x.labelled.remove(from, name)
		x.labelled.add(to, name)
		if s := x.sets[to]; s != nil && s.how.Exclusive {
			x.join(n, s, name)
		}
	}
	if fresh {
		for _, s := range x.sets {
			if s.how.Selector != nil {
				x.evaluate(n, s, name)
			}
		}
		return
	}
	for _, key := range changedKeys(before, now) {
		for s := range x.asking[key] {
			x.evaluate(n, x.sets[s], name)
		}
	}
}

// changedKeys returns the keys whose values differ.
func changedKeys(a, b tags) (out []string) {
	for _, l := range a {
		if other, ok := b.Lookup(l.key.Value()); !ok || other != l.value.Value() {
			out = append(out, l.key.Value())
		}
	}
	for _, l := range b {
		if !a.Has(l.key.Value()) {
			out = append(out, l.key.Value())
		}
	}
	return out
}

// evaluate evaluates the selector of a set against a cluster.
func (x *Index) evaluate(n *news, s *set, name string) {
	x.evaluated++
	if s.how.Selector.Matches(x.clusters[name].labels) {
		x.join(n, s, name)
	} else {
		x.leave(n, s, name)
	}
}

func (x *Index) join(n *news, s *set, name string) {
	c := x.clusters[name]
	at, in := slices.BinarySearch(c.sets, s.name)
	if in {
		return
	}
	c.sets = slices.Insert(c.sets, at, s.name)
	if !s.how.Exclusive {
		s.members.Insert(name)
	}
	n.members = append(n.members, [2]string{s.name, name})
}

func (x *Index) leave(n *news, s *set, name string) {
	c := x.clusters[name]
	at, in := slices.BinarySearch(c.sets, s.name)
	if !in {
		return
	}
	c.sets = slices.Delete(c.sets, at, at+1)
	s.members.Delete(name)
	n.members = append(n.members, [2]string{s.name, name})
}

// putSet stores a set; its members are only recomputed if its selector changed.
func (x *Index) putSet(n *news, current *clusterv1beta2.ManagedClusterSet) {
	s := x.sets[current.Name]
	if s == nil {
		s = &set{name: current.Name, members: names{}}
		x.sets[s.name] = s
		n.presence = append(n.presence, s.name)
		x.reselect(n, s, current)
	} else if !reflect.DeepEqual(s.spec, current.Spec.ClusterSelector) {
		x.reselect(n, s, current)
	}
	if deleting := current.DeletionTimestamp != nil; deleting != s.deleting {
		s.deleting = deleting
		n.presence = append(n.presence, s.name)
	}
	if wanted := managedNamespaces(current); !slices.Equal(s.namespaces, wanted) {
		s.namespaces = wanted
		n.namespaces = append(n.namespaces, s.name)
	}
	n.objects = append(n.objects, s.name)
}

// managedNamespaces returns the names of the namespaces a set wants, sorted.
func managedNamespaces(s *clusterv1beta2.ManagedClusterSet) []string {
	if s.DeletionTimestamp != nil {
		return nil
	}
	var out []string
	for _, ns := range s.Spec.ManagedNamespaces {
		out = append(out, ns.Name)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (x *Index) dropSet(n *news, name string) {
	s := x.sets[name]
	if s == nil {
		return
	}
	x.deselect(s)
	for member := range x.members(s) {
		x.leave(n, s, member)
	}
	delete(x.sets, name)
	n.presence = append(n.presence, name)
	n.objects = append(n.objects, name)
}

// reselect re-reads the selector of a set: members that no longer match leave, and clusters
// that match join.
func (x *Index) reselect(n *news, s *set, current *clusterv1beta2.ManagedClusterSet) {
	before := x.members(s)
	x.deselect(s)
	s.spec = *current.Spec.ClusterSelector.DeepCopy()
	s.how, s.invalid = parseSelector(current)
	s.members = names{}
	after := x.findMembers(s)
	if !s.how.Exclusive {
		s.members = after
	}
	for name := range before.Difference(after) {
		x.leave(n, s, name)
	}
	for name := range after {
		x.join(n, s, name)
	}
	for _, key := range s.how.Keys {
		x.asking.add(key, s.name)
	}
}

// findMembers evaluates a selector against all clusters.
func (x *Index) findMembers(s *set) names {
	out := names{}
	switch {
	case s.how.Exclusive:
		return x.labelled[s.name]
	case s.how.Selector == nil || s.how.Selector == labels.Nothing():
		return out
	}
	for name, c := range x.clusters {
		x.evaluated++
		if s.how.Selector.Matches(c.labels) {
			out.Insert(name)
		}
	}
	return out
}

// deselect forgets which labels a set's selector uses.
func (x *Index) deselect(s *set) {
	for _, key := range s.how.Keys {
		x.asking.remove(key, s.name)
	}
}

// members returns the members of a set, which may be nil; the map belongs to the index.
func (x *Index) members(s *set) names {
	switch {
	case s == nil:
		return nil
	case s.how.Exclusive:
		return x.labelled[s.name]
	}
	return s.members
}

func (x *Index) setBinding(n *news, namespace, name string, binds bool) {
	if x.bound[namespace].Has(name) == binds {
		return
	}
	if binds {
		x.bound.add(namespace, name)
		x.binding.add(name, namespace)
	} else {
		x.bound.remove(namespace, name)
		x.binding.remove(name, namespace)
	}
	n.bindings = append(n.bindings, [2]string{namespace, name})
}
