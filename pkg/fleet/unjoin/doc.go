// SPDX-License-Identifier: Apache-2.0

// Package unjoin removes a cluster from a fleet, on both sides or on the one that can be
// reached.
package unjoin
