// SPDX-License-Identifier: Apache-2.0

// Package hub is the command "hub": init, status, token, backup, restore and clean. It reads
// flags, calls a function of pkg/fleet, which does the work, and prints the result.
package hub
