// SPDX-License-Identifier: Apache-2.0

// Package approve answers the certificate requests of agents, tells how they
// went, and clears them away. It approves the renewal of a certificate by its
// holder, and, where the gate ManagedClusterAutoApproval is on, the first request
// of listed users for a name that no cluster has joined under; it denies what
// was sent with a join token that is for another cluster, was revoked, or had
// ended; all else is left to a person, whose answer stands, and so is the request
// of another agent under the name of a cluster that reports. What has not exactly
// the form of an agent's request is never answered. Requests count for who sent
// them, not for what their labels say; what nobody waits for goes soon, and of
// requests for clusters that do not exist a bounded number is kept.
//
// A cluster's name is held by the agent of the last certificate that was issued;
// the loop notes its name, its join token and the certificate's end in annotations of the
// ManagedCluster, and keeps the conditions DuplicateClusterName and
// CertificateRequestDenied. It reads CertificateSigningRequests with the label
// cluster-name, the Secrets of join tokens, ManagedClusters and the arrivals of
// leases. It signs nothing: kube-controller-manager does.
//
// Stricter than the API's own hub: the review of a renewal names the cluster.
package approve
