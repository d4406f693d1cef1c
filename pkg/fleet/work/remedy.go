// SPDX-License-Identifier: Apache-2.0

package work

import "github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"

// Remedies for works.
const (
	// AddPlacement uses another name, or adds a placement to a set of works.
	AddPlacement fleet.RemedyCode = "work.AddPlacement"
	// ApplyOrphaning makes a set of works leave its objects.
	ApplyOrphaning fleet.RemedyCode = "work.ApplyOrphaning"
	// CreateExecutor creates the ServiceAccount of an executor, or skips the check.
	CreateExecutor fleet.RemedyCode = "work.CreateExecutor"
	// DeleteByForce deletes a work without the agent.
	DeleteByForce fleet.RemedyCode = "work.DeleteByForce"
	// DeleteOlder deletes works and leaves their objects.
	DeleteOlder fleet.RemedyCode = "work.DeleteOlder"
	// DeleteOwner deletes the owner of a work, or the work nevertheless.
	DeleteOwner fleet.RemedyCode = "work.DeleteOwner"
	// DeleteSetOf deletes a set of works.
	DeleteSetOf fleet.RemedyCode = "work.DeleteSetOf"
	// DeleteWork deletes a work.
	DeleteWork fleet.RemedyCode = "work.DeleteWork"
	// GrantRights grants an executor rights, or skips the check.
	GrantRights fleet.RemedyCode = "work.GrantRights"
	// ListOfPlacement lists the works of a placement.
	ListOfPlacement fleet.RemedyCode = "work.ListOfPlacement"
	// NameOne names one cluster.
	NameOne fleet.RemedyCode = "work.NameOne"
	// NameOwn names the placement of a set of works, or clusters.
	NameOwn fleet.RemedyCode = "work.NameOwn"
	// OpenGate enables a feature gate of the hub.
	OpenGate fleet.RemedyCode = "work.OpenGate"
	// PlacementAlone selects clusters only by a placement.
	PlacementAlone fleet.RemedyCode = "work.PlacementAlone"
	// RollOutProgressively chooses a progressive rollout.
	RollOutProgressively fleet.RemedyCode = "work.RollOutProgressively"
	// TakeOver uses another name, or changes the work nevertheless.
	TakeOver fleet.RemedyCode = "work.TakeOver"
	// TakePlacement removes a placement from a set of works.
	TakePlacement fleet.RemedyCode = "work.TakePlacement"
	// WaitLonger waits longer.
	WaitLonger fleet.RemedyCode = "work.WaitLonger"
	// WithoutForce does it without force.
	WithoutForce fleet.RemedyCode = "work.WithoutForce"
)
