// SPDX-License-Identifier: Apache-2.0

// Command ocm-hub turns a cluster into a hub. "ocm-hub run" is the compact layout: the
// operator of the ClusterManager, all control loops of the hub, admission and conversion in
// one process.
//
// Every replica serves health (8443) and admission (9443), and explanations of placements
// (9444) while the gate PlacementDebugServer is on. The replica that holds the lease
// clustermanager-lock leads: it runs the operator, which runs the loops. controllers.go lists
// all loops. Lost leadership, a changed feature gate or a missing API restarts parts within
// the process; only a signal, or a port that cannot be opened, ends the process.
package main
