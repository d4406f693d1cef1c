// SPDX-License-Identifier: Apache-2.0

// Package lease supervises clusters by their leases: a cluster that does not renew for five
// lease durations becomes Unknown, one whose clock is off by as much gets ClockSynced=False,
// and one that has been away past the expiry of its last certificate is no longer Joined.
//
// For each lease it keeps two times and the first sight, about a hundred bytes, and one timer
// wheel serves all clusters. A cluster is judged by when the hub saw its renewTime change,
// not by its own clock; the clock is judged by renewTime. The package writes the conditions
// ManagedClusterConditionAvailable (Unknown only; the agent sets it back),
// ManagedClusterConditionClockSynced and ManagedClusterJoined (False only). The lease itself
// is created by package accept.
package lease
