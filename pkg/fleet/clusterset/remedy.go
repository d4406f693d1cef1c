// SPDX-License-Identifier: Apache-2.0

package clusterset

import "github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"

// What helps with cluster sets.
const (
	// AddElsewhere puts a cluster into another set.
	AddElsewhere fleet.RemedyCode = "clusterset.AddElsewhere"
	// DropAll takes all clusters out of a set.
	DropAll fleet.RemedyCode = "clusterset.DropAll"
	// EditSet takes another name, or changes the set that is there.
	EditSet fleet.RemedyCode = "clusterset.EditSet"
	// ExampleSelector shows a selector as it can be.
	ExampleSelector fleet.RemedyCode = "clusterset.ExampleSelector"
	// LabelClusters changes what a set selects by.
	LabelClusters fleet.RemedyCode = "clusterset.LabelClusters"
	// Move takes a cluster out of the set that it is in.
	Move fleet.RemedyCode = "clusterset.Move"
	// DropBindings deletes the bindings of a set with it.
	DropBindings fleet.RemedyCode = "clusterset.DropBindings"
)
