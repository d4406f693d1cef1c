// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"slices"
	"strings"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
)

// BootstrapUser is the user name of the account whose tokens allow any cluster to ask to
// join, and nothing more.
const BootstrapUser = "system:serviceaccount:" + operatorv1.NamespaceOperator + ":" + clusterv1.BootstrapServiceAccount

// BootstrapClusters returns the clusters that a Kubernetes bootstrap token is for, which
// its groups name, each once; none means any cluster. A request keeps these groups after
// the token's Secret is gone.
func BootstrapClusters(groups []string) []string {
	var out []string
	for _, g := range groups {
		if name, ok := strings.CutPrefix(g, clusterv1.GroupPrefixBootstrapCluster); ok && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}
