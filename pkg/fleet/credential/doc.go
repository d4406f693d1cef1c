// SPDX-License-Identifier: Apache-2.0

// Package credential answers Kubernetes clients that ask for a token of a managed cluster, as a
// credential program: which cluster a client asks about, and the token that the hub copied beside
// the ClusterProfile of this cluster. It only reads.
package credential

import "github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"

// Remedies for clients that get no token.
const (
	// NameHub names the hub in the configuration of the client.
	NameHub fleet.RemedyCode = "credential.NameHub"
	// ShareToken has the hub copy the token of a ManagedServiceAccount beside ClusterProfiles.
	ShareToken fleet.RemedyCode = "credential.ShareToken"
)
