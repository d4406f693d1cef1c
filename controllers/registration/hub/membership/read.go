// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"maps"
	"slices"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

// Size returns the number of members of a set, or why its selector is invalid. A set that
// does not exist has none.
func (x *Index) Size(name string) (int, error) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	s := x.sets[name]
	if s == nil {
		return 0, nil
	}
	return len(x.members(s)), s.invalid
}

// Members returns the clusters of a set, sorted.
func (x *Index) Members(name string) []string {
	x.mu.RLock()
	defer x.mu.RUnlock()
	s := x.sets[name]
	if s == nil {
		return nil
	}
	return sortedNames(x.members(s))
}

// Bound returns the namespaces bound to a set of that name, whether or not it exists, sorted.
func (x *Index) Bound(set string) []string {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return sortedNames(x.binding[set])
}

// Reaches reports whether a namespace is bound to an existing set that contains the cluster.
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

// Reaching returns the namespaces bound to a set that contains the cluster, without
// duplicates, sorted.
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
	return sortedNames(all)
}

// Reached returns the clusters of the sets a namespace is bound to, without duplicates,
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
	return sortedNames(all)
}

// Managed returns the namespaces that a cluster's sets want on it, sorted by set, then by
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

func sortedNames(n names) []string {
	out := make([]string, 0, len(n))
	for name := range n {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}
