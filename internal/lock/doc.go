// SPDX-License-Identifier: Apache-2.0

// Package lock makes sure that one process of several works at a time, by a Lease:
// one agent of a cluster, one leader among the replicas of a hub.
//
// It is a small stand-in for client-go's leader election, which links a typed
// clientset and informers of every API group: one write a period, each with the
// version that the last one left, so that of two holders one notices at its next
// write. Whether a holder is gone is judged by when a change of the lease was seen,
// not by its clock. A holder that ends in order gives the lease back when its work
// has ended, and a restarted container of the same pod takes it over at once: its
// predecessor is dead.
package lock
