// SPDX-License-Identifier: Apache-2.0

package hub

import "github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"

// What helps with a hub.
const (
	// CleanFirst keeps the hub that is there, or removes it first.
	CleanFirst fleet.RemedyCode = "hub.CleanFirst"
	// ReachableHub gives the hub an address that others reach.
	ReachableHub fleet.RemedyCode = "hub.ReachableHub"
	// UnjoinFirst lets the clusters leave first, or goes on without that.
	UnjoinFirst fleet.RemedyCode = "hub.UnjoinFirst"
	// UseHub uses the hub that is there.
	UseHub fleet.RemedyCode = "hub.UseHub"
)
