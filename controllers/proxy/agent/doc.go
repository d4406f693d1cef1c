// SPDX-License-Identifier: Apache-2.0

// Package agent opens the tunnel of a managed cluster to the hub, and serves the requests that
// come through it from the cluster's own API server, or from a Service.
//
// The agent dials out with the certificate that it has; nothing listens. It acts for the users
// that the hub names, by impersonation, and refuses what the hub never sends: names that begin
// with system:, credentials, headers of impersonation. What those users may do is decided by the
// managed cluster's own rights.
//
// The cluster decides which of its Services are reached, by a list in a ConfigMap beside the agent.
// They are told no identity and no credential, and are reached only at the address that the cluster
// has given to each of them.
//
// Where the hub names an account instead of a user, it acts as the ServiceAccount of that name in the
// namespace of add-ons, if that was created for a ManagedServiceAccount of this very hub.
//
// It needs the right to impersonate users and groups on the managed cluster, to get its Services, to
// get and impersonate ServiceAccounts in the namespace of add-ons only, and to read ConfigMaps and
// write Events in its own; and the right to get tunnels/proxy of its own cluster on the hub.
package agent
