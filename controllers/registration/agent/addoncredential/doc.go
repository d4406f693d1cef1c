// SPDX-License-Identifier: Apache-2.0

// Package addoncredential keeps the credentials that add-ons ask for in
// status.registrations of their ManagedClusterAddOn: client certificates for the
// hub's API server or of another signer, or tokens of a ServiceAccount.
//
// It reads the add-ons of the cluster and, by one watch over a label, the
// secrets that it made itself, wherever they are. For each registration it keeps
// one secret in the add-on's namespace and, while a certificate request is under
// way, one in its own with key and name of that request, so that a restart goes
// on with the same one. On the hub it creates certificate requests, watches each
// that is outstanding by its name, and asks for tokens. Each pass takes one step
// for each registration; Decide chooses it from what the caches show. On the
// ManagedClusterAddOn it writes the driver and the conditions
// ClusterCertificateRotated and TokenRefreshed.
//
// What the hub says is not trusted further than an add-on needs: names, subjects
// and signers are checked (subject.go has the rules), and a secret that does not
// bear this agent's label is never touched. An add-on that is refused, or whose
// namespace is missing, is told so in its own condition and holds up no other.
//
// It approves nothing, makes no namespaces, and does not judge the health of
// add-ons.
package addoncredential
