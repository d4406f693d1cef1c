// SPDX-License-Identifier: Apache-2.0

package addon

import "github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"

// What helps with add-ons.
const (
	// AddPlacement adds a placement to an add-on.
	AddPlacement fleet.RemedyCode = "addon.AddPlacement"
	// ChangeDefault lets the clusters of an add-on be changed.
	ChangeDefault fleet.RemedyCode = "addon.ChangeDefault"
	// CheckPlacementOrConfirm looks why a placement is not decided, or goes on without that.
	CheckPlacementOrConfirm fleet.RemedyCode = "addon.CheckPlacementOrConfirm"
	// DropConfig takes a configuration away from an add-on on a cluster.
	DropConfig fleet.RemedyCode = "addon.DropConfig"
	// ExampleVersion shows a version as it can be.
	ExampleVersion fleet.RemedyCode = "addon.ExampleVersion"
	// NameClusters names clusters and no placement.
	NameClusters fleet.RemedyCode = "addon.NameClusters"
	// NameConfig names a file with a configuration.
	NameConfig fleet.RemedyCode = "addon.NameConfig"
	// OtherVersion takes another version, or replaces the one that is there.
	OtherVersion fleet.RemedyCode = "addon.OtherVersion"
	// ShowHook shows the work of the hook.
	ShowHook fleet.RemedyCode = "addon.ShowHook"
	// TakeOver takes another name, or leaves the add-on to the hub.
	TakeOver fleet.RemedyCode = "addon.TakeOver"
	// CorrectNamespace corrects a namespace.
	CorrectNamespace fleet.RemedyCode = "addon.CorrectNamespace"
)
