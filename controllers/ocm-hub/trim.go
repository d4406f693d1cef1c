// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/kubectl-ocm/kubectl-ocm/internal/manager"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

// trimCluster drops what no loop of the hub reads from a ManagedCluster. Placements can
// select by nearly everything, also with expressions, so only the long CA bundles of the
// cluster's client configs are dropped. A patch contains only what a loop changed, so nothing
// is lost.
func trimCluster(in any) (any, error) {
	if mc, ok := in.(*clusterv1.ManagedCluster); ok {
		for i := range mc.Spec.ManagedClusterClientConfigs {
			mc.Spec.ManagedClusterClientConfigs[i].CABundle = nil
		}
	}
	return manager.Trim(in)
}
