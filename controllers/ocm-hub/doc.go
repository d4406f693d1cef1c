// SPDX-License-Identifier: Apache-2.0

// Command ocm-hub makes a cluster a hub. "ocm-hub run" is the compact layout:
// the operator of the ClusterManager, all control loops of the hub, admission
// and conversion in one process.
//
// Every replica serves health (8443) and admission (9443), and explanations of
// placements (9444) while the gate PlacementDebugServer is on; one leads, by the
// lease clustermanager-lock, and runs the operator, which runs the loops.
// controllers.go is the list of all loops. Losing the lead, a changed feature
// gate or an API that is not there restarts parts in process; only a signal, or
// a port that cannot be opened, ends it.
package main
