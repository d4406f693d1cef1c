// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

// Count is how many out of a number of things are well.
type Count struct {
	Good  int `json:"good"`
	Total int `json:"total"`
}

// Amount is how much of a resource clusters have.
type Amount struct {
	Allocatable string `json:"allocatable,omitempty"`
	Capacity    string `json:"capacity,omitempty"`
}

// Add counts one more thing.
func (c *Count) Add(good bool) {
	c.Total++
	if good {
		c.Good++
	}
}

func amount(mc *clusterv1.ManagedCluster, name clusterv1.ResourceName, text func(resource.Quantity) string) Amount {
	var a Amount
	if q, ok := mc.Status.Allocatable[name]; ok {
		a.Allocatable = text(q)
	}
	if q, ok := mc.Status.Capacity[name]; ok {
		a.Capacity = text(q)
	}
	return a
}

// gibibytes formats memory in whole Gi or tenths.
func gibibytes(q resource.Quantity) string {
	gi := float64(q.Value()) / (1 << 30)
	if gi >= 10 || gi == float64(int64(gi)) {
		return fmt.Sprintf("%.0fGi", gi)
	}
	return fmt.Sprintf("%.1fGi", gi)
}
