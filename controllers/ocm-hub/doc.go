// SPDX-License-Identifier: Apache-2.0

// Command ocm-hub turns a cluster into a hub. "ocm-hub run" is the compact layout: the
// operator of the ClusterManager, all control loops of the hub, admission and conversion in
// one process.
//
// Every replica serves health (8443) and admission (9443), and explanations of placements
// (9444) while the gate PlacementDebugServer is on. The replica that holds the lease
// clustermanager-lock leads: it runs the operator, which runs the loops. controllers.go lists
// all loops.
//
// In the split layout "ocm-hub operator" runs the parts in Deployments of their own:
// "registration", "placement", "work" and "addon" are selections of that list, each with its own
// lease, and "webhook" serves admission. The operator serves admission, too, for the time in
// which a hub is switched from one layout to the other.
//
// Lost leadership, a changed feature gate or a missing API restarts parts within
// the process; only a signal, or a port that cannot be opened, ends the process.
package main
