// SPDX-License-Identifier: Apache-2.0

// Package cluster reads the managed clusters of a hub: their states, their sets, and which of
// them an operation targets. It changes their labels and taints.
package cluster
