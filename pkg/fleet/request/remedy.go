// SPDX-License-Identifier: Apache-2.0

package request

import "github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"

// Remedies for certificate requests.
const (
	// DenyRequest denies a request, or vouches for its sender.
	DenyRequest fleet.RemedyCode = "request.DenyRequest"
	// TokenForCluster creates a token for one cluster.
	TokenForCluster fleet.RemedyCode = "request.TokenForCluster"
)
