// SPDX-License-Identifier: Apache-2.0

// Package fleet tests the plugin and its library against real API servers: a hub and
// managed clusters as plain processes. The tests that need the hub process and agents run
// on a process node; the others play the part of the hub's loops by hand, so that they
// can cause each refusal and each wait.
package fleet
