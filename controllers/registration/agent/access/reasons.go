// SPDX-License-Identifier: Apache-2.0

package access

import (
	"strings"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
)

// MissingReason returns the hub reason of HubConnectionDegraded for a hub kubeconfig that is
// missing or incomplete; empty when the secret, whose data is nil if it is absent, has all parts.
func MissingReason(data map[string][]byte) (reason, message string) {
	secret := "Secret " + clusterv1.SecretHubKubeconfig
	switch {
	case data == nil:
		return operatorv1.ReasonHubKubeConfigSecretMissing, secret + " is missing"
	case len(data[clusterv1.SecretKeyKubeconfig]) == 0:
		return operatorv1.ReasonHubKubeConfigMissing, secret + " has no kubeconfig"
	case len(data[clusterv1.SecretKeyClusterName]) == 0:
		return operatorv1.ReasonClusterNameMissing, secret + " has no cluster-name"
	}
	return "", ""
}

// HubReason returns the hub reason of HubConnectionDegraded for what the hub grants to a hub
// kubeconfig; empty when that is everything.
func HubReason(a Answer) (reason, message string) {
	switch {
	case a.Problem != "":
		return operatorv1.ReasonHubKubeConfigError, "The kept access does not work: " + a.Problem
	case a.Refused:
		return operatorv1.ReasonHubKubeConfigUnauthorized, refusal(a.Missing)
	}
	return "", ""
}

// BootstrapReason returns the bootstrap reason of HubConnectionDegraded for a secret with that
// name and data, and what the hub grants to it.
func BootstrapReason(secret string, data map[string][]byte, a Answer) (reason, message string) {
	switch {
	case len(data[clusterv1.SecretKeyKubeconfig]) == 0:
		return operatorv1.ReasonBootstrapSecretMissing, "Secret " + secret + " with key kubeconfig is missing"
	case a.Problem != "":
		return operatorv1.ReasonBootstrapSecretError, "The bootstrap kubeconfig does not work: " + a.Problem
	case a.Refused:
		return operatorv1.ReasonBootstrapSecretUnauthorized, "The hub refuses the bootstrap kubeconfig" + listMissing(a.Missing)
	}
	return operatorv1.ReasonBootstrapSecretFunctional, ""
}

// refusal describes what the hub does not grant. An agent that cannot even read its own
// ManagedCluster has no rights at all; a list of all rights would hide the cause.
func refusal(missing []string) string {
	for _, right := range missing {
		if strings.HasPrefix(right, "get managedclusters.") {
			return "The hub does not let the agent see its ManagedCluster: " +
				"the cluster was not accepted yet, or it was removed from the hub (join it again to request access)"
		}
	}
	return "The hub does not grant the agent its rights" + listMissing(missing)
}

func listMissing(missing []string) string {
	if len(missing) == 0 {
		return ""
	}
	return ": " + strings.Join(missing, ", ")
}
