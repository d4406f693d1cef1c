// SPDX-License-Identifier: Apache-2.0

// Package install makes a ManagedClusterAddOn on every cluster that the install
// strategy of an add-on selects, and removes those on other clusters.
//
// Every instance of an add-on that the hub manages is owned by it, so that it goes
// with it. Annotations of a ManagedCluster with the prefix of add-ons are copied
// to instances that placements bring, also of add-ons that the hub does not
// manage. Both are written by server-side apply: what a user sets on an instance,
// and the cluster does not, stays.
//
// Events on the add-on tell on how many clusters it was installed, from how many
// removed, and what failed.
//
// It owns existence, owner reference and these annotations of instances; it writes
// no status.
//
// Other than in the API's own implementation: a cluster with the annotation of
// addonv1alpha1.AnnotationPrefixExclude is left out; on one that is being deleted
// nothing is made or removed, package gc empties it in order; as long as a
// placement has no decision yet nothing is removed; annotations of users stay.
package install
