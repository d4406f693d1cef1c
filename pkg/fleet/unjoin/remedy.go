// SPDX-License-Identifier: Apache-2.0

package unjoin

import "github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"

// Remedies for unjoining a cluster.
const (
	// DetachByForce removes a cluster that no longer exists from the hub.
	DetachByForce fleet.RemedyCode = "unjoin.DetachByForce"
	// NameCluster names the cluster to unjoin.
	NameCluster fleet.RemedyCode = "unjoin.NameCluster"
	// NameKlusterlet names the Klusterlet, because several are joined under one name.
	NameKlusterlet fleet.RemedyCode = "unjoin.NameKlusterlet"
	// NameHub names the hub.
	NameHub fleet.RemedyCode = "unjoin.NameHub"
	// NameSpoke names the cluster, or goes on without it.
	NameSpoke fleet.RemedyCode = "unjoin.NameSpoke"
	// OtherHub uses another hub.
	OtherHub fleet.RemedyCode = "unjoin.OtherHub"
	// OtherHubOrNone uses another hub, or goes on without one.
	OtherHubOrNone fleet.RemedyCode = "unjoin.OtherHubOrNone"
	// RemoveByForce removes a cluster from the hub without its agent.
	RemoveByForce fleet.RemedyCode = "unjoin.RemoveByForce"
	// RemoveWorks removes works first, or leaves their objects.
	RemoveWorks fleet.RemedyCode = "unjoin.RemoveWorks"
	// TakeFinalizers removes the finalizers of others.
	TakeFinalizers fleet.RemedyCode = "unjoin.TakeFinalizers"
	// Unjoin unjoins a cluster.
	Unjoin fleet.RemedyCode = "unjoin.Unjoin"
	// UnjoinByForce unjoins a cluster without its agent.
	UnjoinByForce fleet.RemedyCode = "unjoin.UnjoinByForce"
)
