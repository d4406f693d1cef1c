// SPDX-License-Identifier: Apache-2.0

package taint

import (
	"context"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

// gather needs nothing but the cluster.
func gather(_ context.Context, mc *clusterv1.ManagedCluster) (State, error) {
	return State{Cluster: mc}, nil
}
