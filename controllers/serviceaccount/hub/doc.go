// SPDX-License-Identifier: Apache-2.0

// Package hub is the hub's side of ManagedServiceAccounts. One loop ends those whose time is
// over, and says of the others why no agent serves them or that a token has ended. The other
// gives the agent of each cluster with the add-on its rights: about the Secrets that have the
// name of a ManagedServiceAccount of this cluster, and no others.
//
// Neither reads a Secret. The rights are written as the add-on manager, which has no more than
// an administrator granted it together with the add-on.
package hub
