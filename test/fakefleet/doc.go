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
// the connection, and 200 to 230 KiB where it serves works and add-ons.
//
// With Options.Works it also watches the ManifestWorks of its cluster: it adds the finalizer,
// reports each generation as applied and available with one write, and removes the finalizer of
// a deleted work. With Options.AddOns it watches the ManagedClusterAddOns: it requests the
// certificates that they register for with its own identity, and reports each add-on as
// available. The lease of an add-on is on the managed cluster, so none is simulated: the hub sees
// only that report. Both watches begin with the cached state of the API server, which ocm-agent
// lists instead.
//
// An agent of Fleet.Attach belongs to a cluster that is accepted already. It only reports,
// renews and, if wanted, watches works and add-ons, on the connection of Options.Pool that all
// such agents share. It takes about 2 KiB without these watches, so that thousands are cheap.
//
// Person is the administrator, who approves certificate requests and accepts clusters.
// Counts returns what the agents requested from the API server. Leave, Return and Churn end
// agents and start them again, and Options.Latency delays their requests.
//
// What differs from one cluster to the next (capacity, phases of the leases, delays) is
// drawn from Options.Seed and the cluster's name, and which agents Churn ends from the seed,
// the same in every run. Keys are not: crypto/ecdsa takes no seed.
//
// It is not an agent for real clusters: nothing is kept on disk, certificates are not
// renewed, and works are reported without being applied.
package fakefleet
