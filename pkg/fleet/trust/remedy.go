// SPDX-License-Identifier: Apache-2.0

package trust

import "github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"

// Remedies for a hub that is unknown or cannot be reached.
const (
	// CheckAddress checks the address of the hub and the route to it.
	CheckAddress fleet.RemedyCode = "trust.CheckAddress"
	// CheckCA checks the CA that was given, and the address.
	CheckCA fleet.RemedyCode = "trust.CheckCA"
	// CompareCA verifies the CA of a hub.
	CompareCA fleet.RemedyCode = "trust.CompareCA"
	// ExampleProxy shows an example of a proxy address.
	ExampleProxy fleet.RemedyCode = "trust.ExampleProxy"
	// NameHubCA names the CA of a hub.
	NameHubCA fleet.RemedyCode = "trust.NameHubCA"
	// RightHub checks whether it is the right hub.
	RightHub fleet.RemedyCode = "trust.RightHub"
	// TakeHash gets the hash of a CA from the hub.
	TakeHash fleet.RemedyCode = "trust.TakeHash"
)
