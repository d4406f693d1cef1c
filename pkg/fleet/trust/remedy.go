// SPDX-License-Identifier: Apache-2.0

package trust

import "github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"

// What helps where a hub is not known, or not reached.
const (
	// CheckAddress looks at the address of the hub and the way to it.
	CheckAddress fleet.RemedyCode = "trust.CheckAddress"
	// CheckCA looks at the CA that was named, and at the address.
	CheckCA fleet.RemedyCode = "trust.CheckCA"
	// CompareCA proves the CA of a hub.
	CompareCA fleet.RemedyCode = "trust.CompareCA"
	// ExampleProxy shows the address of a proxy as it can be.
	ExampleProxy fleet.RemedyCode = "trust.ExampleProxy"
	// NameHubCA names the CA of a hub.
	NameHubCA fleet.RemedyCode = "trust.NameHubCA"
	// RightHub looks whether it is the right hub.
	RightHub fleet.RemedyCode = "trust.RightHub"
	// TakeHash takes the hash of a CA from the hub.
	TakeHash fleet.RemedyCode = "trust.TakeHash"
)
