// SPDX-License-Identifier: Apache-2.0

package managednamespace

import (
	"slices"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// State holds everything a decision needs.
type State struct {
	// Cluster is the current cluster; Decide does not change it.
	Cluster *clusterv1.ManagedCluster
	// Wanted are the entries without conditions, in order.
	Wanted []clusterv1.ClusterSetManagedNamespace
}

// Decide is pure. The plan is empty when the entries are correct.
func Decide(s State) reconcile.Plan {
	have := s.Cluster.Status.ManagedNamespaces
	if s.Cluster.DeletionTimestamp != nil || slices.EqualFunc(have, s.Wanted, sameEntry) {
		return reconcile.Plan{}
	}
	mc := s.Cluster.DeepCopy()
	mc.Status.ManagedNamespaces = nil
	for _, entry := range s.Wanted {
		if at := slices.IndexFunc(have, func(h clusterv1.ClusterSetManagedNamespace) bool { return sameEntry(h, entry) }); at >= 0 {
			entry.Conditions = have[at].DeepCopy().Conditions
		}
		mc.Status.ManagedNamespaces = append(mc.Status.ManagedNamespaces, entry)
	}
	return reconcile.Plan{Object: mc}
}

func sameEntry(a, b clusterv1.ClusterSetManagedNamespace) bool {
	return a.ClusterSet == b.ClusterSet && a.Name == b.Name
}
