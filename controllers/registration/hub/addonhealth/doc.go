// SPDX-License-Identifier: Apache-2.0

// Package addonhealth is the hub's part of the health of add-ons, in two loops.
//
// The first keeps the labels feature.open-cluster-management.io/addon-<name> of
// every ManagedCluster that has been heard of: available, unhealthy or
// unreachable, as the add-on's condition Available says. An add-on whose name is
// too long for a label key gets none, and an Event tells so once.
//
// The second copies the word that a cluster is Unknown to the condition
// Available of each of its add-ons. Available and False are not copied: once the
// cluster is back, its agent tells of each add-on itself. An agent that reports
// add-ons without renewing its lease is contradicted at most every ten seconds.
//
// It owns these labels, and Available of ManagedClusterAddOns while the cluster
// is Unknown. Of an add-on it keeps its name, its deletion, its cleanup priority
// and that one condition; the type AddOn is also what package gc counts.
package addonhealth
