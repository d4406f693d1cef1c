// SPDX-License-Identifier: Apache-2.0

// Package status says on the ManagedCluster how the cluster is: that it
// joined, whether its API server is healthy, its version, what its nodes have
// and the claims about it.
//
// It reads from collections: the agent's own ManagedCluster on the hub, and
// nodes and ClusterClaims of the cluster, of which only numbers, names and
// values are kept. A Prober reads /livez once a minute, and every five seconds
// while it fails. What is said is one merge patch with uid and
// resourceVersion, sent only when something changed; what others say in the
// same status stays.
//
// Unlike other agents this one goes on reporting when the hub finds its clock
// wrong; it logs that instead. It does not renew the lease (package
// heartbeat).
package status
