// SPDX-License-Identifier: Apache-2.0

package work

import "github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"

// What helps with works.
const (
	// AddPlacement takes another name, or adds a placement to a set of works.
	AddPlacement fleet.RemedyCode = "work.AddPlacement"
	// ApplyOrphaning has a set of works leave its objects.
	ApplyOrphaning fleet.RemedyCode = "work.ApplyOrphaning"
	// CreateExecutor makes the ServiceAccount of an executor, or does not look at it.
	CreateExecutor fleet.RemedyCode = "work.CreateExecutor"
	// DeleteByForce deletes a work without the agent.
	DeleteByForce fleet.RemedyCode = "work.DeleteByForce"
	// DeleteOlder deletes works and leaves their objects.
	DeleteOlder fleet.RemedyCode = "work.DeleteOlder"
	// DeleteOwner deletes what a work belongs to, or the work all the same.
	DeleteOwner fleet.RemedyCode = "work.DeleteOwner"
	// DeleteSetOf deletes a set of works.
	DeleteSetOf fleet.RemedyCode = "work.DeleteSetOf"
	// DeleteWork deletes a work.
	DeleteWork fleet.RemedyCode = "work.DeleteWork"
	// GrantRights gives an executor rights, or does not look at them.
	GrantRights fleet.RemedyCode = "work.GrantRights"
	// ListOfPlacement lists the works of a placement.
	ListOfPlacement fleet.RemedyCode = "work.ListOfPlacement"
	// NameOne names one cluster.
	NameOne fleet.RemedyCode = "work.NameOne"
	// NameOwn names the placement of a set of works, or clusters.
	NameOwn fleet.RemedyCode = "work.NameOwn"
	// OpenGate opens a feature gate of the hub.
	OpenGate fleet.RemedyCode = "work.OpenGate"
	// PlacementAlone chooses clusters by a placement and nothing else.
	PlacementAlone fleet.RemedyCode = "work.PlacementAlone"
	// RollOutProgressively chooses a progressive rollout.
	RollOutProgressively fleet.RemedyCode = "work.RollOutProgressively"
	// TakeOver takes another name, or changes the work all the same.
	TakeOver fleet.RemedyCode = "work.TakeOver"
	// TakePlacement takes a placement away from a set of works.
	TakePlacement fleet.RemedyCode = "work.TakePlacement"
	// WaitLonger waits longer.
	WaitLonger fleet.RemedyCode = "work.WaitLonger"
	// WithoutForce does it without force.
	WithoutForce fleet.RemedyCode = "work.WithoutForce"
)
