// SPDX-License-Identifier: Apache-2.0

// Package proxy sends requests of users of a hub through tunnels to managed clusters. The hub and
// the cluster are real API servers; the hub's server and the agent run in the test, with exactly
// the rights of the installed manifests. The far ends of upgrades are servers of the test, behind
// an aggregated API of the managed cluster: there are no nodes.
package proxy
