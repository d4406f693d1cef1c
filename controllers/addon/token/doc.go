// SPDX-License-Identifier: Apache-2.0

// Package token keeps what the token driver of add-ons needs in the namespace of a
// cluster: for each ManagedClusterAddOn that uses it one ServiceAccount, and a Role
// and RoleBinding by which the agent of that very cluster may ask for the tokens of
// that very account. It asks for no token itself.
//
// Who may make these may become any account of the hub's cluster. The process itself
// may not: it makes them as the add-on manager, which may unless the hub was made with
// narrow rights for add-ons. Then a person binds ClusterRole cluster-manager-token-driver
// to that account; the condition has the command.
//
// It owns these three objects, by their names and the mark of the driver, and the
// condition TokenInfrastructureReady. The decision is registration.DecideToken.
//
// Other than in the API's own implementation:
//   - an account of the name that somebody else made is not handed out: it may do more
//     than the add-on shall. The condition says so;
//   - a cluster that is not accepted, or no longer, has none of it: with the account
//     end the tokens that were given, which are good for a year otherwise;
//   - an instance that is made anew does not inherit the account of the one before.
package token
