// SPDX-License-Identifier: Apache-2.0

// Package agent defines what the parts of the registration agent share. The registration
// agent is the part of ocm-agent that registers a cluster with a hub and keeps it registered:
//
//   - Settings: the configuration from a Klusterlet or flags;
//   - Identity: the names of the cluster and the agent, and the subject of their
//     certificate;
//   - Link: a connection to a hub whose certificate can be replaced while in use;
//   - Contact: what fails in the communication with a hub, and since when;
//   - Session: what the loops need that run while the agent has access;
//   - Sessions: runs one session at a time, through renewals of the certificate.
//
// The loops are subpackages, among them credential (from the bootstrap secret to a hub
// kubeconfig and its rotation), heartbeat (the lease) and status (what the ManagedCluster
// reports).
//
// It uses the dynamic client, because a typed clientset would more than double the memory of
// the process.
package agent
