// SPDX-License-Identifier: Apache-2.0

// Package hub groups the hub's side of registration: one package per control loop, plus
// package membership, which the loops for cluster sets share. How agents are identified is
// defined in internal/identity.
//
// This package holds only what the loops share; controllers/ocm-hub lists and starts them.
package hub
