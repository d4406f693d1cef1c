// SPDX-License-Identifier: Apache-2.0

// Package accept is the command "accept": it lets clusters in that asked to be
// joined, refuses them, or shows who asked. The exact checks of a request are
// pkg/fleet's Accept.
package accept
