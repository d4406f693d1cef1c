// SPDX-License-Identifier: Apache-2.0

// Package hub turns a cluster into a hub, reports its state, and removes it again.
package hub
