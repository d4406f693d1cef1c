// SPDX-License-Identifier: Apache-2.0

package placement

import "github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"

// Remedies for placements.
const (
	// AddToSet adds a cluster to a set.
	AddToSet fleet.RemedyCode = "placement.AddToSet"
	// BindOneOf binds one of the existing sets.
	BindOneOf fleet.RemedyCode = "placement.BindOneOf"
	// BindSet binds a set in a namespace.
	BindSet fleet.RemedyCode = "placement.BindSet"
	// CorrectField shows what fields a kind has.
	CorrectField fleet.RemedyCode = "placement.CorrectField"
	// CreateSet creates a set.
	CreateSet fleet.RemedyCode = "placement.CreateSet"
	// ExampleCluster shows an existing cluster.
	ExampleCluster fleet.RemedyCode = "placement.ExampleCluster"
	// FitSelector labels clusters so that a set selects them.
	FitSelector fleet.RemedyCode = "placement.FitSelector"
	// LabelCluster gives a cluster labels that a set selects by.
	LabelCluster fleet.RemedyCode = "placement.LabelCluster"
	// ReplaceSpec replaces the spec of a placement, or uses another name.
	ReplaceSpec fleet.RemedyCode = "placement.ReplaceSpec"
)
