// SPDX-License-Identifier: Apache-2.0

package token

import "github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"

// Remedies for join tokens.
const (
	// AccountToken creates a token of the bootstrap service account.
	AccountToken fleet.RemedyCode = "token.AccountToken"
	// BootstrapToken creates a bootstrap token for a cluster.
	BootstrapToken fleet.RemedyCode = "token.BootstrapToken"
	// BootstrapTokens creates one bootstrap token for each cluster.
	BootstrapTokens fleet.RemedyCode = "token.BootstrapTokens"
	// ExampleTTL shows an example of a lifetime.
	ExampleTTL fleet.RemedyCode = "token.ExampleTTL"
	// ExampleUses shows an example of a number of clusters.
	ExampleUses fleet.RemedyCode = "token.ExampleUses"
	// NewToken creates a new token on the hub.
	NewToken fleet.RemedyCode = "token.NewToken"
	// OneCluster uses another kind of token, or one for a single cluster.
	OneCluster fleet.RemedyCode = "token.OneCluster"
)
