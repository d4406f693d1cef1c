// SPDX-License-Identifier: Apache-2.0

package member

import "github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"

// What helps with agents.
const (
	// JoinWithNewToken joins once more, with a new token.
	JoinWithNewToken fleet.RemedyCode = "member.JoinWithNewToken"
)
