// SPDX-License-Identifier: Apache-2.0

package trace

import "github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"

// What helps to see more of a trace.
const (
	// ListHubWorks lists the works of the hub.
	ListHubWorks fleet.RemedyCode = "trace.ListHubWorks"
	// NameHub names the context of the hub.
	NameHub fleet.RemedyCode = "trace.NameHub"
	// NameCluster says what the hub calls the cluster.
	NameCluster fleet.RemedyCode = "trace.NameCluster"
)
