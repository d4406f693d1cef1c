// SPDX-License-Identifier: Apache-2.0

package hub

import "github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"

// Remedies for hubs.
const (
	// Adopt takes the hub over from its operator, or uses it as it is.
	Adopt fleet.RemedyCode = "hub.Adopt"
	// CleanFirst keeps the existing hub, or removes it first.
	CleanFirst fleet.RemedyCode = "hub.CleanFirst"
	// ReachableHub gives the hub an address that clusters can reach.
	ReachableHub fleet.RemedyCode = "hub.ReachableHub"
	// UnjoinFirst unjoins the clusters first, or goes on without that.
	UnjoinFirst fleet.RemedyCode = "hub.UnjoinFirst"
)
