// SPDX-License-Identifier: Apache-2.0

// Package cluster is the command "cluster": the managed clusters of a hub, one
// line each. The states are folded from conditions by pkg/fleet.
package cluster
