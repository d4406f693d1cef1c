// SPDX-License-Identifier: Apache-2.0

// Package install creates a ManagedClusterAddOn for every cluster that the install strategy
// of an add-on selects, and deletes those of other clusters.
//
// Every instance of an add-on that the hub manages is owned by the add-on, so that it is
// deleted with it. Annotations of a ManagedCluster with the prefix of add-ons are copied to
// the instances that placements select, also for add-ons that the hub does not manage. Both
// are written by server-side apply: annotations that a user sets on an instance, and the
// cluster does not have, stay.
//
// Events on the add-on report on how many clusters it was installed, from how many it was
// removed, and what failed.
//
// It owns the existence, the owner reference and these annotations of instances; it writes no
// status.
//
// Unlike in Open Cluster Management's own implementation, a cluster with the annotation
// addonv1alpha1.AnnotationPrefixExclude is left out; for a cluster that is being deleted
// nothing is created or deleted, since package gc removes its objects in order; while a
// placement has no decision yet, nothing is deleted; and annotations of users stay.
package install
