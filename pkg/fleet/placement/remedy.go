// SPDX-License-Identifier: Apache-2.0

package placement

import "github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"

// What helps with placements.
const (
	// AddToSet puts a cluster into a set.
	AddToSet fleet.RemedyCode = "placement.AddToSet"
	// BindOneOf binds a set, one of those that there are.
	BindOneOf fleet.RemedyCode = "placement.BindOneOf"
	// BindSet binds a set in a namespace.
	BindSet fleet.RemedyCode = "placement.BindSet"
	// CorrectField tells what fields a kind has.
	CorrectField fleet.RemedyCode = "placement.CorrectField"
	// CreateSet makes a set.
	CreateSet fleet.RemedyCode = "placement.CreateSet"
	// ExampleCluster shows a cluster that is there.
	ExampleCluster fleet.RemedyCode = "placement.ExampleCluster"
	// FitSelector labels clusters so that a set selects them.
	FitSelector fleet.RemedyCode = "placement.FitSelector"
	// LabelCluster gives a cluster labels that a set selects by.
	LabelCluster fleet.RemedyCode = "placement.LabelCluster"
	// ReplaceSpec replaces the spec of a placement, or takes another name.
	ReplaceSpec fleet.RemedyCode = "placement.ReplaceSpec"
)
