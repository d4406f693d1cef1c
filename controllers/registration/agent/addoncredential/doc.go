// SPDX-License-Identifier: Apache-2.0

// Package addoncredential maintains the credentials that add-ons request in
// status.registrations of their ManagedClusterAddOn: client certificates for the hub's API
// server or from another signer, or ServiceAccount tokens.
//
// It reads the cluster's add-ons and, through one watch on a label, the secrets it created
// itself, in any namespace. For each registration it keeps one secret in the add-on's
// namespace and, while a certificate request is in progress, one in its own namespace with
// the key and name of that request, so that a restart continues with the same one. On the hub
// it creates certificate requests, watches each outstanding one by name, and requests tokens.
// Each pass takes one step for each registration; Decide chooses it from what the caches
// show. On the ManagedClusterAddOn it writes the driver and the conditions
// ClusterCertificateRotated and TokenRefreshed.
//
// The hub is trusted no further than an add-on needs: names, subjects and signers are checked
// (subject.go has the rules), and a secret without this agent's label is never touched. An
// add-on that is refused, or whose namespace is missing, gets this reported in its own
// condition and does not hold up any other.
//
// The package approves nothing, creates no namespaces, and does not evaluate the health of
// add-ons.
package addoncredential
