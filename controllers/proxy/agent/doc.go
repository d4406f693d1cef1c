// SPDX-License-Identifier: Apache-2.0

// Package agent opens the tunnel of a managed cluster to the hub, and serves the requests that
// come through it from the cluster's own API server.
//
// The agent dials out with the certificate that it has; nothing listens. It acts for the users
// that the hub names, by impersonation, and refuses what the hub never sends: names that begin
// with system:, credentials, headers of impersonation. What those users may do is decided by the
// managed cluster's own rights.
//
// It needs the right to impersonate users and groups, but not ServiceAccounts, on the managed
// cluster, and the right to get tunnels/proxy of its own cluster on the hub.
package agent
