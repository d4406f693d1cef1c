// SPDX-License-Identifier: Apache-2.0

// Package selection chooses the agent's hub among several bootstrap secrets, and leaves a hub
// that no longer accepts it or is unreachable for too long.
//
// It reads the listed secrets, what is stored of the hub in use, and the signs of life of
// that hub that a session observes anyway. It asks other hubs only when the one in use should
// be left, or when there is none: whether the bootstrap kubeconfig has its rights there, and
// whether the ManagedCluster is absent or accepted. It writes nothing; package credential
// reads Chosen and joins the hub of that secret in the same process.
//
// A hub in use is kept until another one is usable, so an agent whose hubs are all
// unreachable continues with what it has. A hub that was left is tried last for a while.
// Decide is pure; one pass asks at most one hub.
package selection
