// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/kubectl-ocm/kubectl-ocm/internal/manager"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

// trimCluster keeps of a ManagedCluster what loops of the hub read. Placements
// select by nearly everything, also by expressions; only the authorities behind a
// cluster's addresses, which are long, are left out. A patch of a loop names only
// what the loop changed, so that what is not kept is not lost.
func trimCluster(in any) (any, error) {
	out, err := manager.Trim(in)
	if err != nil {
		return nil, fmt.Errorf("trimming a managedcluster: %w", err)
	}
	if mc, ok := out.(*clusterv1.ManagedCluster); ok {
		for i := range mc.Spec.ManagedClusterClientConfigs {
			mc.Spec.ManagedClusterClientConfigs[i].CABundle = nil
		}
	}
	return out, nil
}
