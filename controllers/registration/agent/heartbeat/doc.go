// SPDX-License-Identifier: Apache-2.0

// Package heartbeat renews the lease by which the hub knows that an agent is
// alive.
//
// It reads the agent's own ManagedCluster from a collection and writes the
// renewTime of the lease managed-cluster-lease in the cluster's namespace on
// the hub, and nothing else: the hub creates the lease. One renewal is one
// PUT, because the version that the last one left is remembered; only after a
// conflict or at start the lease is read. It is renewed while the hub accepts
// the cluster, every leaseDurationSeconds times 1 to 1.25, so that the agents
// of many clusters do not renew in step. How each renewal ends is told to
// Options.Outcome: it is the one sign of life that comes without an event.
//
// The write is a PUT with a version instead of a patch of pkg/reconcile: this
// is the one write that happens for ever, and the cheapest form of it.
package heartbeat
