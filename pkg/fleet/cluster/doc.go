// SPDX-License-Identifier: Apache-2.0

// Package cluster reads the managed clusters of a hub: their states, their sets, and which of
// them an operation targets.
package cluster
