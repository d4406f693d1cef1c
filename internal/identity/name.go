// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// reservedNames and reservedPrefixes are namespaces that no cluster may own.
// registration and work are names of ClusterRoles that all agents share: a cluster
// of that name would overwrite them. managed-clusters ends the group that all
// agents are in: what a cluster of that name may do, the agents of all clusters
// might.
var (
	reservedNames    = []string{"default", "registration", "work", "managed-clusters"}
	reservedPrefixes = []string{"kube-", "openshift-", "open-cluster-management"}
)

// CheckName tells why a ManagedCluster must not have this name, or nil. A
// cluster owns the namespace of its name on the hub, so the name must be a DNS
// label and must not be one that the hub itself uses.
func CheckName(name string) error {
	if faults := validation.IsDNS1123Label(name); len(faults) > 0 {
		return fmt.Errorf("cluster name %q is not usable as a namespace: %s", name, strings.Join(faults, "; "))
	}
	if Reserved(name) {
		return fmt.Errorf("cluster name %q is reserved: a cluster owns the namespace of its name on the hub; "+
			"default, registration, work, managed-clusters, kube-*, openshift-* and open-cluster-management* cannot be used", name)
	}
	return nil
}

// Reserved tells whether a name is one of the hub's own, of Kubernetes or of its
// distributions, which no cluster may have.
func Reserved(name string) bool {
	return slices.Contains(reservedNames, name) ||
		slices.ContainsFunc(reservedPrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}
