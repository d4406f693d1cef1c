// SPDX-License-Identifier: Apache-2.0

package fakefleet

import (
	"fmt"
	"math/rand/v2"

	"k8s.io/apimachinery/pkg/api/resource"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

// smallCluster is the status of a cluster of 3 to 9 nodes, as verbose as one from
// kubelets.
func smallCluster(cluster string, r *rand.Rand) clusterv1.ManagedClusterStatus {
	nodes := 3 + r.Int64N(7)
	cores := nodes * (4 << r.Int64N(3))
	amounts := func(share int64) clusterv1.ResourceList {
		return clusterv1.ResourceList{
			clusterv1.ResourceCPU:    *resource.NewMilliQuantity(cores*10*share, resource.DecimalSI),
			clusterv1.ResourceMemory: *resource.NewQuantity(cores*4<<30/100*share, resource.BinarySI),
			"pods":                   *resource.NewQuantity(nodes*110, resource.DecimalSI),
			"ephemeral-storage":      *resource.NewQuantity(nodes*(100<<30)/100*share, resource.BinarySI),
			"hugepages-1Gi":          *resource.NewQuantity(0, resource.DecimalSI),
			"hugepages-2Mi":          *resource.NewQuantity(0, resource.DecimalSI),
		}
	}
	return clusterv1.ManagedClusterStatus{
		Version:  clusterv1.ManagedClusterVersion{Kubernetes: "v1.36.3"},
		Capacity: amounts(100), Allocatable: amounts(95),
		ClusterClaims: []clusterv1.ManagedClusterClaim{
			{Name: "id.k8s.io", Value: fmt.Sprintf("%08x-%s", r.Uint32(), cluster)},
			{Name: "platform.open-cluster-management.io", Value: []string{"AWS", "GCP", "BareMetal"}[r.IntN(3)]},
			{Name: "region", Value: fmt.Sprintf("region-%d", r.IntN(12))},
		},
	}
}
