// SPDX-License-Identifier: Apache-2.0

// Package placement is the command "placement": which clusters a Placement
// selects, and why each cluster is in or out. What is decided is computed in
// pkg/fleet, by the library that the hub decides with; here are the flags and the
// tables.
package placement
