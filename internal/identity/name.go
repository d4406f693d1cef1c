// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// reservedNames and reservedPrefixes are namespaces that no cluster may own. registration
// and work are names of ClusterRoles that all agents share: a cluster of that name would
// overwrite them. managed-clusters is the suffix of the group of all agents: the agents
// of all clusters would get the rights of a cluster of that name.
var (
	reservedNames    = []string{"default", "registration", "work", "managed-clusters"}
	reservedPrefixes = []string{"kube-", "openshift-", "open-cluster-management"}
)

// CheckName returns why a ManagedCluster must not have this name, or nil. A cluster owns
// the namespace of its name on the hub, so the name must be a DNS label and must not be
// one that the hub itself uses.
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

// Reserved reports whether a name belongs to the hub itself, to Kubernetes or to a
// distribution, so that no cluster may have it.
func Reserved(name string) bool {
	return slices.Contains(reservedNames, name) ||
		slices.ContainsFunc(reservedPrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}
