// SPDX-License-Identifier: Apache-2.0

// Package credential copies the tokens of ManagedServiceAccounts to the namespaces of
// ClusterProfiles, where programs that know clusters by their profiles find them.
//
// Each key is one profile. A token is copied only to a namespace that is bound to a set with the
// cluster, as this hub itself sees it, and only beside a profile that this hub maintains: a
// profile that somebody wrote gets nothing. A namespace of a cluster gets no copies either,
// because the agent of that cluster may read Secrets there by the names that
// ManagedServiceAccounts have. Agents write the tokens, so their size and form are checked, and
// nothing else of their Secrets is copied.
//
// A copy belongs to its profile, and goes with it. It is renewed when the token changes, put back
// when somebody changes it, and removed when the ManagedServiceAccount or its label goes. When the
// agent only fails to renew a token, the copy stays as long as the token does. A Secret that is
// no copy for this profile is left alone, and an Event on the profile says so.
//
// The loop runs while the gates ClusterProfile and ManagedServiceAccount are on. It acts as the
// add-on manager, whose rights about Secrets an installer or an administrator grants
// (hub.AllowCredentials); until then it waits, and logs why. Of each Secret it keeps a digest, not
// the token, about half a kilobyte; the token itself is read when a copy is written.
package credential
