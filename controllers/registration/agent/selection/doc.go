// SPDX-License-Identifier: Apache-2.0

// Package selection chooses, among several bootstrap secrets, the hub that an
// agent belongs to, and leaves a hub that does not want it or is away for too
// long.
//
// It reads the listed secrets, what is kept of the hub in use, and the signs of
// life of that hub which a session gives anyway. It asks other hubs only when
// the one in use is to be left, or when there is none: whether the bootstrap
// kubeconfig has its rights there, and whether the ManagedCluster is absent or
// accepted. It writes nothing; Chosen is read by package credential, which joins
// the hub of that secret in process.
//
// A hub in use is kept until another one is usable, so an agent whose hubs are
// all away goes on with what it has. A hub that was left comes last for a while.
// Decide is pure; one pass asks at most one hub.
package selection
