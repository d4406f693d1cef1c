// SPDX-License-Identifier: Apache-2.0

// Package lock makes sure that one agent process works at a time, by a Lease in
// the agent's namespace.
//
// It is a small stand-in for client-go's leader election, which links a typed
// clientset: one write every twenty seconds, each with the version that the
// last one left, so that of two holders one notices at its next write. Whether
// a holder is gone is judged by when a change of the lease was seen, not by
// its clock. A holder that ends in order gives the lease back, and a restarted
// container of the same pod takes it over at once: its predecessor is dead.
//
// The name klusterlet-agent-lock is that of operator.md 8; the times are
// shorter than there, because an agent that nobody may replace for two minutes
// is worse than three writes a minute.
package lock
