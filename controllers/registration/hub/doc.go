// SPDX-License-Identifier: Apache-2.0

// Package hub gathers the hub's side of registration: one package below it for
// each control loop, and membership, which the loops of sets share. Who comes
// under which name, internal/identity tells.
//
// It holds no code itself; controllers/ocm-hub lists and starts the loops.
package hub
