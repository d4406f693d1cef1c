// SPDX-License-Identifier: Apache-2.0

package trace

import "github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"

// Remedies for an incomplete trace.
const (
	// ListHubWorks lists the works of the hub.
	ListHubWorks fleet.RemedyCode = "trace.ListHubWorks"
	// NameHub names the context of the hub.
	NameHub fleet.RemedyCode = "trace.NameHub"
	// NameCluster gives the cluster's name on the hub.
	NameCluster fleet.RemedyCode = "trace.NameCluster"
)
