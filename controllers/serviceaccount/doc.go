// SPDX-License-Identifier: Apache-2.0

// Package serviceaccount holds the loops of ManagedServiceAccounts: below agent what creates
// the accounts and writes their tokens to the hub, below hub what gives agents their rights
// and ends accounts, and below credential what copies tokens beside ClusterProfiles.
package serviceaccount
