// SPDX-License-Identifier: Apache-2.0

// Command demo shows the whole product on one machine: a hub and two managed clusters,
// installed with the plugin's own commands, and an application that is declared on the hub
// and runs on both.
//
//	demo up     start (or start over), and leave everything running
//	demo down   stop and remove it
//
// Everything it starts and writes is below one directory, kubectl-ocm/demo in the user's
// cache directory. As root on Linux with containerd, the clusters have real nodes
// (test/harness/nodes), kept alive by a process that holds them. Elsewhere they are those
// of test/playground: real control planes, and a node that runs the pods of our own images
// as processes of this machine; OCM_DEMO_NODES=process selects these where both are
// possible.
//
// The demo does nothing that a user could not type: it prints each command and runs it.
package main
