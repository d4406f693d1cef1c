// SPDX-License-Identifier: Apache-2.0

package clusterset

import "github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"

// Remedies for cluster sets.
const (
	// AddElsewhere adds a cluster to another set.
	AddElsewhere fleet.RemedyCode = "clusterset.AddElsewhere"
	// DropAll removes all clusters from a set.
	DropAll fleet.RemedyCode = "clusterset.DropAll"
	// EditSet uses another name, or changes the existing set.
	EditSet fleet.RemedyCode = "clusterset.EditSet"
	// ExampleSelector shows an example of a selector.
	ExampleSelector fleet.RemedyCode = "clusterset.ExampleSelector"
	// LabelClusters changes the labels that a set selects by.
	LabelClusters fleet.RemedyCode = "clusterset.LabelClusters"
	// Move takes a cluster out of the set that it is in.
	Move fleet.RemedyCode = "clusterset.Move"
	// DropBindings deletes the bindings of a set with it.
	DropBindings fleet.RemedyCode = "clusterset.DropBindings"
)
