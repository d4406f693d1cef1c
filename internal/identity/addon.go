// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"slices"
	"strings"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

// AddOn is the default identity on the hub of an add-on's agent on a cluster; an add-on
// may choose another one.
type AddOn struct{ Cluster, Name string }

// User returns the user name of an agent, whose name is usually that of the add-on.
func (a AddOn) User(agent string) string { return a.Group() + ":agent:" + agent }

// Group returns the group of the add-on on the cluster.
func (a AddOn) Group() string {
	return clusterv1.UserPrefix + "cluster:" + a.Cluster + ":addon:" + a.Name
}

// SharedGroup returns the group of the add-on's agents on all clusters: nothing that is
// meant for one cluster may be bound to it.
func (a AddOn) SharedGroup() string { return clusterv1.UserPrefix + "addon:" + a.Name }

// Groups returns both groups.
func (a AddOn) Groups() []string { return []string{a.Group(), a.SharedGroup()} }

// TokenUser returns the user name of the agent when it uses a token of the ServiceAccount
// that the hub creates for it.
func (a AddOn) TokenUser() string {
	return "system:serviceaccount:" + a.Cluster + ":" + a.ServiceAccount()
}

// ServiceAccount returns the name of that account, in the namespace of the cluster.
func (a AddOn) ServiceAccount() string { return a.Name + addonv1alpha1.ServiceAccountSuffix }

// IsAddOn reports whether a requester is the agent of an add-on on a cluster, by a group
// or user name that only such an agent has.
func IsAddOn(user string, groups []string) bool {
	if group, _, ok := strings.Cut(user, ":agent:"); ok && isAddOnGroup(group) {
		return true
	}
	return slices.ContainsFunc(groups, isAddOnGroup)
}

// isAddOnGroup reports whether a name is the AddOn.Group of some add-on.
func isAddOnGroup(name string) bool {
	rest, ok := strings.CutPrefix(name, clusterv1.UserPrefix+"cluster:")
	cluster, rest, more := strings.Cut(rest, ":")
	addOn, addon := strings.CutPrefix(rest, "addon:")
	return ok && more && addon && cluster != "" && addOn != "" && !strings.Contains(addOn, ":")
}
