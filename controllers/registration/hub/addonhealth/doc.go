// SPDX-License-Identifier: Apache-2.0

// Package addonhealth is the hub's part of add-on health, in two loops.
//
// The first maintains the labels feature.open-cluster-management.io/addon-<name> of every
// ManagedCluster that has been heard from: available, unhealthy or unreachable, according to
// the add-on's condition Available. An add-on whose name is too long for a label key gets no
// label, and one Event reports it.
//
// The second copies the Unknown of a cluster to the condition Available of each of its
// add-ons. True and False are not copied: once the cluster is back, its agent reports each
// add-on itself. An agent that reports add-ons without renewing its lease is overruled at
// most every ten seconds.
//
// The package owns these labels, and Available of ManagedClusterAddOns while the cluster is
// Unknown. Of an add-on it keeps the name, the deletion, the cleanup priority and that one
// condition; package gc uses the type AddOn as well.
package addonhealth
