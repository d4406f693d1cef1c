// SPDX-License-Identifier: Apache-2.0

package member

import "github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"

// Remedies for agents.
const (
	// JoinWithNewToken joins again, with a new token.
	JoinWithNewToken fleet.RemedyCode = "member.JoinWithNewToken"
	// RenewManaged gives the operator a new kubeconfig of the managed cluster of a hosted agent.
	RenewManaged fleet.RemedyCode = "member.RenewManaged"
)
