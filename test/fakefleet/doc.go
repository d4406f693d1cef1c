// SPDX-License-Identifier: Apache-2.0

// Package fakefleet simulates the agents of many clusters in one process, for
// tests and benchmarks of a hub at scale. The hub, its API server and all
// requests are real; only the managed clusters behind the agents are not.
//
// An agent of Fleet.Join does what ocm-agent does on a hub, request by request: with the
// bootstrap identity it creates its ManagedCluster and a certificate request, watches
// that one request until the certificate is issued, connects with it on its own TLS
// connection, polls until it is accepted, watches its one ManagedCluster, reports once,
// and renews its lease with one PUT every 1 to 1.25 lease durations. It reports available
// again after the hub has set it to Unknown. An agent takes about 150 KiB, most of it for
// the connection.
//
// An agent of Fleet.Attach belongs to a cluster that is accepted already. It only reports
// and renews, on the connection of Options.Pool that all such agents share. It takes
// about 2 KiB, so that thousands are cheap.
//
// Person is the administrator, who approves certificate requests and accepts clusters.
// Counts returns what the agents requested from the API server.
//
// What differs from one cluster to the next (capacity, phases of the leases) is
// drawn from Options.Seed and the cluster's name, the same in every run. Keys
// are not: crypto/ecdsa takes no seed.
//
// It is not an agent for real clusters: nothing is kept on disk, certificates are not
// renewed, and no works are applied.
package fakefleet
