// SPDX-License-Identifier: Apache-2.0

// Package approve answers the certificate requests of agents. It approves the
// renewal of a certificate by its holder, and, where the gate
// ManagedClusterAutoApproval is on, the first request of listed users; it denies
// the request of another agent under the name of a cluster that is alive; all
// else is left to a person.
//
// A cluster's name is held by the agent of the last certificate that was issued;
// the loop notes its name and the certificate's end in annotations of the
// ManagedCluster, and keeps the condition DuplicateClusterName. It reads
// CertificateSigningRequests with the label cluster-name, ManagedClusters and
// the arrivals of leases. It signs nothing: kube-controller-manager does.
//
// Contract: registration.md 5.3. Stricter than there: the review of a renewal
// names the cluster.
package approve
