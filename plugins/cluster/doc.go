// SPDX-License-Identifier: Apache-2.0

// Package cluster is the command "cluster": it lists the managed clusters of a hub,
// denies them, and removes them from the hub. pkg/fleet derives their states from
// conditions and makes the changes.
package cluster
