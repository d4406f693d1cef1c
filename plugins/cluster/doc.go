// SPDX-License-Identifier: Apache-2.0

// Package cluster is the command "cluster": the managed clusters of a hub, one
// line each, and the ways to deny them their rights and to remove them from the
// hub. The states are folded from conditions by pkg/fleet, which also does what
// is done.
package cluster
