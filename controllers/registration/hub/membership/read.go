// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

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
	return sets.List(x.members(x.sets[name]))
}

// Bound returns the namespaces bound to a set of that name, whether or not it exists, sorted.
func (x *Index) Bound(set string) []string {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return sets.List(x.binding[set])
}

// Reaches reports whether a namespace is bound to an existing set that contains the cluster.
func (x *Index) Reaches(namespace, name string) bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return slices.ContainsFunc(x.setsOf(name), x.bound[namespace].Has)
}

// Reaching returns the namespaces bound to a set that contains the cluster, without
// duplicates, sorted.
func (x *Index) Reaching(name string) []string {
	x.mu.RLock()
	defer x.mu.RUnlock()
	all := names{}
	for _, set := range x.setsOf(name) {
		maps.Copy(all, x.binding[set])
	}
	return sets.List(all)
}

// Reached returns the clusters of the sets a namespace is bound to, without duplicates,
// sorted.
func (x *Index) Reached(namespace string) []string {
	x.mu.RLock()
	defer x.mu.RUnlock()
	all := names{}
	for name := range x.bound[namespace] {
		maps.Copy(all, x.members(x.sets[name]))
	}
	return sets.List(all)
}

// Managed returns the namespaces that a cluster's sets want on it, sorted by set, then by
// name.
func (x *Index) Managed(name string) []clusterv1.ClusterSetManagedNamespace {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var out []clusterv1.ClusterSetManagedNamespace
	for _, set := range x.setsOf(name) {
		for _, namespace := range x.sets[set].namespaces {
			out = append(out, clusterv1.ClusterSetManagedNamespace{
				ClusterSet: set, ManagedNamespaceConfig: clusterv1.ManagedNamespaceConfig{Name: namespace},
			})
		}
	}
	return out
}

// setsOf returns the sets that a cluster is in; the slice belongs to the index.
func (x *Index) setsOf(name string) []string {
	if c := x.clusters[name]; c != nil {
		return c.sets
	}
	return nil
}
