// SPDX-License-Identifier: Apache-2.0

package unjoin

import "github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"

// What helps when a cluster is to leave.
const (
	// DetachByForce takes a cluster that is not there off the hub.
	DetachByForce fleet.RemedyCode = "unjoin.DetachByForce"
	// NameCluster says which cluster is to leave.
	NameCluster fleet.RemedyCode = "unjoin.NameCluster"
	// NameHub names the hub.
	NameHub fleet.RemedyCode = "unjoin.NameHub"
	// NameSpoke names the cluster, or goes on without it.
	NameSpoke fleet.RemedyCode = "unjoin.NameSpoke"
	// OtherHub takes another hub.
	OtherHub fleet.RemedyCode = "unjoin.OtherHub"
	// OtherHubOrNone takes another hub, or goes on without one.
	OtherHubOrNone fleet.RemedyCode = "unjoin.OtherHubOrNone"
	// RemoveByForce removes a cluster from the hub without its agent.
	RemoveByForce fleet.RemedyCode = "unjoin.RemoveByForce"
	// RemoveWorks removes works first, or leaves their objects.
	RemoveWorks fleet.RemedyCode = "unjoin.RemoveWorks"
	// TakeFinalizers takes off the finalizers of somebody else.
	TakeFinalizers fleet.RemedyCode = "unjoin.TakeFinalizers"
	// Unjoin lets a cluster leave.
	Unjoin fleet.RemedyCode = "unjoin.Unjoin"
	// UnjoinByForce lets a cluster leave without its agent.
	UnjoinByForce fleet.RemedyCode = "unjoin.UnjoinByForce"
)
