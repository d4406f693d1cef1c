// SPDX-License-Identifier: Apache-2.0

// Package hub is the command "hub": init, status, token and clean. Flags come
// in, a function of pkg/fleet is called, and what it returned is printed; the
// work itself is done there.
package hub
