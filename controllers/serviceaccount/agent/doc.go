// SPDX-License-Identifier: Apache-2.0

// Package agent serves the ManagedServiceAccounts of one cluster: it creates a ServiceAccount
// on the cluster for each, requests a token of it and writes the token to a Secret on the
// hub, before the previous token ends.
//
// The token in the Secret says itself whose it is and how long it is valid, so that nothing
// else has to be remembered: an agent that restarts goes on without a request. Whatever
// happens to the account, the Secret or the token is seen by a watch; only time itself has a
// timer. While a token cannot be renewed, the previous one stays.
//
// What differs from the API's own agent:
//   - an account that the agent did not create yields no token without its consent, which is
//     an annotation; it is never deleted;
//   - a Secret that is neither labelled nor owned is left alone;
//   - a token that cannot be read is replaced like one that the cluster refuses;
//   - the Secrets are watched one by one, by name: the agent may read no other.
package agent
