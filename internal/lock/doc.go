// SPDX-License-Identifier: Apache-2.0

// Package lock makes sure that only one of several processes works at a time, by a Lease:
// one agent of a cluster, one leader among the replicas of a hub.
//
// It is a small replacement for client-go's leader election, which links a typed
// clientset and informers of every API group. It makes one write a period, each
// conditional on the version that the last one left, so that of two holders one notices
// at its next write. A write of its own whose answer came too late does not count: an API
// server that is starved would otherwise take the lock from a holder that has renewed it.
// Whether a holder is gone is determined by when a change of the lease was last observed,
// not by the holder's clock. A holder that stops cleanly releases the lease when its work
// has ended, and a restarted container of the same pod takes it over at once, because its
// predecessor is dead. A holder may say in the lease at which address the others reach it.
package lock
