// SPDX-License-Identifier: Apache-2.0

package addon

import "github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"

// Remedies for add-ons.
const (
	// AddPlacement adds a placement to an add-on.
	AddPlacement fleet.RemedyCode = "addon.AddPlacement"
	// ChangeDefault allows the clusters of an add-on to be changed.
	ChangeDefault fleet.RemedyCode = "addon.ChangeDefault"
	// CheckPlacementOrConfirm checks why a placement is not decided, or goes on without a
	// decision.
	CheckPlacementOrConfirm fleet.RemedyCode = "addon.CheckPlacementOrConfirm"
	// DropConfig removes a configuration from an add-on on a cluster.
	DropConfig fleet.RemedyCode = "addon.DropConfig"
	// ExampleVersion shows an example of a version.
	ExampleVersion fleet.RemedyCode = "addon.ExampleVersion"
	// NameClusters names clusters instead of a placement.
	NameClusters fleet.RemedyCode = "addon.NameClusters"
	// NameConfig names a file with a configuration.
	NameConfig fleet.RemedyCode = "addon.NameConfig"
	// OtherVersion uses another version, or replaces the existing one.
	OtherVersion fleet.RemedyCode = "addon.OtherVersion"
	// ShowHook shows the work of the hook.
	ShowHook fleet.RemedyCode = "addon.ShowHook"
	// TakeOver uses another name, or leaves the add-on to the hub.
	TakeOver fleet.RemedyCode = "addon.TakeOver"
	// CorrectNamespace corrects a namespace.
	CorrectNamespace fleet.RemedyCode = "addon.CorrectNamespace"
)
