// SPDX-License-Identifier: Apache-2.0

package request

import "github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"

// What helps with certificate requests.
const (
	// DenyRequest denies a request, or says who sent it.
	DenyRequest fleet.RemedyCode = "request.DenyRequest"
	// TokenForCluster makes a token that is for one cluster.
	TokenForCluster fleet.RemedyCode = "request.TokenForCluster"
)
