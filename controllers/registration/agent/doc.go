// SPDX-License-Identifier: Apache-2.0

// Package agent is the vocabulary of the registration agent, the part of
// ocm-agent that makes a cluster known to a hub and keeps it known:
//
//   - Settings: what a Klusterlet or flags tell it;
//   - Identity: the cluster's name and the agent's, and the subject of their
//     certificate;
//   - Link: a connection to a hub whose certificate is exchanged while it is
//     in use;
//   - Contact: what of the talk with a hub fails, and since when;
//   - Session: all that loops need which run while the agent has access.
//
// The loops are packages below: credential (from the bootstrap secret to a hub
// kubeconfig and its rotation), heartbeat (the lease) and status (what the
// ManagedCluster says). This package starts nothing itself.
//
// The client is the dynamic one, because a typed
// clientset would more than double the memory of the process.
package agent
