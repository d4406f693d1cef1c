// SPDX-License-Identifier: Apache-2.0

// Package lease supervises the clusters by their leases: who does not renew for
// five lease durations becomes Unknown, whose clock is off by as much is shown
// with ClockSynced False, and who has been away for longer than its last
// certificate lives is no longer Joined.
//
// Of each lease two times and the sight are kept, about a hundred bytes, and one
// timer wheel serves all clusters. A cluster is judged by when the hub saw its
// renewTime change, not by what its clock says; the clock is judged by
// renewTime. It writes the conditions ManagedClusterConditionAvailable (Unknown
// only; the agent sets it back), ManagedClusterConditionClockSynced and
// ManagedClusterJoined (False only). The lease itself is made by package accept.
package lease
