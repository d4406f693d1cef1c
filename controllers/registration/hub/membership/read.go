// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"maps"
	"slices"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

// Size is the number of members of a set, or why its selector cannot be used. A
// set that does not exist has none.
func (x *Index) Size(name string) (int, error) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	s := x.sets[name]
	if s == nil {
		return 0, nil
	}
	return len(x.members(s)), s.invalid
}

// Members are the clusters of a set, sorted.
func (x *Index) Members(name string) []string {
	x.mu.RLock()
	defer x.mu.RUnlock()
	s := x.sets[name]
	if s == nil {
		return nil
	}
	return sorted(x.members(s))
}

// Bound are the namespaces that are bound to a set of that name, whether there
// is one or not, sorted.
func (x *Index) Bound(set string) []string {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return sorted(x.binding[set])
}

// Reaches tells whether a namespace is bound to a set that exists and has the
// cluster.
func (x *Index) Reaches(namespace, name string) bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	c := x.clusters[name]
	if c == nil {
		return false
	}
	bound := x.bound[namespace]
	return slices.ContainsFunc(c.sets, func(set string) bool {
		_, ok := bound[set]
		return ok
	})
}

// Reaching are the namespaces that are bound to a set that has the cluster,
// each once, sorted.
func (x *Index) Reaching(name string) []string {
	x.mu.RLock()
	defer x.mu.RUnlock()
	c := x.clusters[name]
	if c == nil {
		return nil
	}
	all := names{}
	for _, set := range c.sets {
		for namespace := range x.binding[set] {
			all[namespace] = struct{}{}
		}
	}
	return sorted(all)
}

// Reached are the clusters of the sets that a namespace is bound to, each once,
// sorted.
func (x *Index) Reached(namespace string) []string {
	x.mu.RLock()
	defer x.mu.RUnlock()
	all := names{}
	for name := range x.bound[namespace] {
		if s := x.sets[name]; s != nil {
			maps.Copy(all, x.members(s))
		}
	}
	return sorted(all)
}

// Managed are the namespaces that the sets of a cluster want on it, by set, then by
// name.
func (x *Index) Managed(name string) []clusterv1.ClusterSetManagedNamespace {
	x.mu.RLock()
	defer x.mu.RUnlock()
	c := x.clusters[name]
	if c == nil {
		return nil
	}
	var out []clusterv1.ClusterSetManagedNamespace
	for _, set := range c.sets {
		for _, namespace := range x.sets[set].namespaces {
			out = append(out, clusterv1.ClusterSetManagedNamespace{
				ClusterSet: set, ManagedNamespaceConfig: clusterv1.ManagedNamespaceConfig{Name: namespace},
			})
		}
	}
	return out
}

func sorted(n names) []string {
	out := make([]string, 0, len(n))
	for name := range n {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}
