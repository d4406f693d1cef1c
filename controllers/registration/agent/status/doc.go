// SPDX-License-Identifier: Apache-2.0

// Package status reports the state of the cluster on the ManagedCluster: that it has joined,
// whether its API server is healthy, its version, the resources of its nodes, and its claims.
//
// It reads from collections: the agent's own ManagedCluster on the hub, and the cluster's
// nodes and ClusterClaims, of which only quantities, names and values are kept. A Prober
// reads /livez once a minute, and every five seconds while it fails. A report is one merge
// patch with uid and resourceVersion, sent only when something changed; what others write to
// the same status is preserved.
//
// Unlike other agents, this one keeps reporting when the hub considers its clock wrong; it
// logs that instead. It does not renew the lease (package heartbeat does).
package status
