// SPDX-License-Identifier: Apache-2.0

// Package token maintains what the token driver of add-ons needs in the namespace of a
// cluster: for each ManagedClusterAddOn that uses it, a ServiceAccount, and a Role and
// RoleBinding that let the agent of only this cluster request tokens of only this account.
// The package requests no token itself.
//
// Whoever may create these can act as any account of the hub's cluster. The process itself
// may not: it creates them as the add-on manager, which may unless the hub was installed with
// narrow rights for add-ons. In that case an administrator has to bind ClusterRole
// cluster-manager-token-driver to the account of the add-on manager; the condition contains
// the command.
//
// It owns these three objects, identified by their names and the label of the driver, and the
// condition TokenInfrastructureReady. The decision is registration.DecideToken.
//
// Unlike in Open Cluster Management's own implementation:
//   - an account with this name that another user created is not used: it may have more
//     rights than the add-on should. The condition reports this;
//   - a cluster that is not, or no longer, accepted has none of these objects: deleting the
//     account revokes its tokens, which are otherwise valid for a year;
//   - an instance that is recreated does not inherit the account of the previous one.
package token
