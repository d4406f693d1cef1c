// SPDX-License-Identifier: Apache-2.0

package cluster

import "github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"

// Remedies for the choice of clusters, and for changing them.
const (
	// NameSome names clusters in one of the possible ways.
	NameSome fleet.RemedyCode = "cluster.NameSome"
	// ExampleSelector shows an example of a selector.
	ExampleSelector fleet.RemedyCode = "cluster.ExampleSelector"
	// Overwrite replaces a value that is already there.
	Overwrite fleet.RemedyCode = "cluster.Overwrite"
	// AddToSet adds clusters to a set, DropFromSet removes them.
	AddToSet    fleet.RemedyCode = "cluster.AddToSet"
	DropFromSet fleet.RemedyCode = "cluster.DropFromSet"
)
