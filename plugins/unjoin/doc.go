// SPDX-License-Identifier: Apache-2.0

// Package unjoin is the command "unjoin": it takes a cluster away from its hub.
// What is removed on which side, and when it is refused, is pkg/fleet's Unjoin;
// this package shows the targets and asks.
package unjoin
