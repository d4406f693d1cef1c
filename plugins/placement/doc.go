// SPDX-License-Identifier: Apache-2.0

// Package placement is the command "placement": it creates and deletes Placements, and
// shows which clusters they select and why. pkg/fleet computes the decision with the
// library that the hub uses; this package has the flags and tables.
package placement
