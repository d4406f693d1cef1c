// SPDX-License-Identifier: Apache-2.0

package accept

import "github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"

// Remedies for accepting a cluster.
const (
	// AcceptIfSame accepts a cluster that was known before.
	AcceptIfSame fleet.RemedyCode = "accept.AcceptIfSame"
	// ChooseRequester chooses one of several requesters.
	ChooseRequester fleet.RemedyCode = "accept.ChooseRequester"
	// ReplaceAgent gives the name to another agent, or keeps it.
	ReplaceAgent fleet.RemedyCode = "accept.ReplaceAgent"
)
