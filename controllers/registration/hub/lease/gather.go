// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"context"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

// gather adds what is known of the cluster's lease.
func (c *Controller) gather(_ context.Context, mc *clusterv1.ManagedCluster) (State, error) {
	s := State{Cluster: mc, Now: c.config.Clock.Now()}
	if b, ok := c.config.Arrivals.Get(mc.Name); ok {
		s.Beat = &b
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s.Told, s.Missed = c.told[mc.Name], c.missed[mc.Name]
	return s, nil
}
