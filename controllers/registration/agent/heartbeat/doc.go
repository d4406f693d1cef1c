// SPDX-License-Identifier: Apache-2.0

// Package heartbeat renews the lease that shows the hub that an agent is alive.
//
// It reads the agent's own ManagedCluster from a collection and writes the renewTime of the
// lease managed-cluster-lease in the cluster's namespace on the hub, and nothing else: the
// hub creates the lease. One renewal is one PUT, because the version returned by the last one
// is remembered; the lease is only read at start or after a conflict. While the hub accepts
// the cluster, it is renewed every leaseDurationSeconds times 1 to 1.25, so that the agents
// of many clusters do not renew in step. The outcome of each renewal is passed to
// Config.Outcome: it is the one sign of life that comes without an event.
//
// The write is a PUT with a version instead of a patch of pkg/reconcile: it is the one write
// that is repeated forever, and this is its cheapest form.
package heartbeat
