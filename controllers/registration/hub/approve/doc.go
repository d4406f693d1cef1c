// SPDX-License-Identifier: Apache-2.0

// Package approve answers agents' certificate requests, reports their outcome, and cleans
// them up. It approves the renewal of a certificate by its holder and, with the gate
// ManagedClusterAutoApproval on, the first request of listed users for a name that no cluster
// has joined under. It denies a request sent with a join token that is for another cluster,
// was revoked, or had expired. Everything else is left to a user, whose answer is final,
// including a request by another agent under the name of a cluster that reports. A request
// that does not have exactly the form of an agent's request is never answered. Requests are
// attributed by their sender, not by their labels; requests that no agent waits for are
// deleted soon, and only a bounded number is kept for clusters that do not exist.
//
// A cluster's name is held by the agent that was issued the last certificate. The loop
// records the agent's name, its join token and the certificate's expiry in annotations of the
// ManagedCluster, and maintains the conditions DuplicateClusterName and
// CertificateRequestDenied. It reads CertificateSigningRequests with the label cluster-name,
// the Secrets of join tokens, ManagedClusters and the arrivals of leases. It signs nothing:
// kube-controller-manager does.
//
// It is stricter than the upstream hub: the access review of a renewal names the cluster.
package approve
