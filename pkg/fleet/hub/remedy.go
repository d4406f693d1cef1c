// SPDX-License-Identifier: Apache-2.0

package hub

import "github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"

// Remedies for hubs.
const (
	// Adopt takes the hub over from its operator, or uses it as it is.
	Adopt fleet.RemedyCode = "hub.Adopt"
	// ChangeHosted changes a hub on the cluster that runs it.
	ChangeHosted fleet.RemedyCode = "hub.ChangeHosted"
	// CleanFirst keeps the existing hub, or removes it first.
	CleanFirst fleet.RemedyCode = "hub.CleanFirst"
	// ReachableHub gives the hub an address that clusters can reach.
	ReachableHub fleet.RemedyCode = "hub.ReachableHub"
	// RemoveHosted removes the hub of another cluster that runs here.
	RemoveHosted fleet.RemedyCode = "hub.RemoveHosted"
	// UpgradeAgent moves the agent of a cluster to the release of the program.
	UpgradeAgent fleet.RemedyCode = "hub.UpgradeAgent"
	// UpgradeFirst moves the hub to the release of the program first.
	UpgradeFirst fleet.RemedyCode = "hub.UpgradeFirst"
	// UnjoinFirst unjoins the clusters first, or goes on without that.
	UnjoinFirst fleet.RemedyCode = "hub.UnjoinFirst"
)
