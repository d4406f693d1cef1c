// SPDX-License-Identifier: Apache-2.0

package token

import "github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"

// What helps with join tokens.
const (
	// AccountToken makes a token of the bootstrap service account.
	AccountToken fleet.RemedyCode = "token.AccountToken"
	// BootstrapToken makes a bootstrap token for a cluster.
	BootstrapToken fleet.RemedyCode = "token.BootstrapToken"
	// BootstrapTokens makes one bootstrap token for each cluster.
	BootstrapTokens fleet.RemedyCode = "token.BootstrapTokens"
	// ExampleTTL shows a life as it can be.
	ExampleTTL fleet.RemedyCode = "token.ExampleTTL"
	// ExampleUses shows a number of clusters as it can be.
	ExampleUses fleet.RemedyCode = "token.ExampleUses"
	// NewToken makes a new token on the hub.
	NewToken fleet.RemedyCode = "token.NewToken"
	// OneCluster takes a token of another kind, or one for one cluster.
	OneCluster fleet.RemedyCode = "token.OneCluster"
)
