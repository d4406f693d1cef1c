// SPDX-License-Identifier: Apache-2.0

// Package webhook is the hub's admission and conversion server: mutation and validation of
// ManagedClusters, validation of ManagedClusterSets, their bindings, Placements,
// ManifestWorks, ManifestWorkReplicaSets and AddOnTemplates, restrictions on join tokens and
// on what agents write into a status, the hosting cluster of add-ons, warnings about rules that can never work, and
// conversion of add-ons between their two versions, on one HTTPS port.
//
// The rules are functions of the request, of the answers of a Hub (for example whether a user
// has a right, or a namespace exists) and of the time; the server around them only decodes
// and encodes. Every replica of the hub serves them, leader or not. The package writes
// nothing but SubjectAccessReviews.
//
// Rules that are stricter than the API's contract are ratcheting: what a stored object
// already contains never prevents other changes of it. The failure policies, for when no
// replica answers, are documented with the webhook configurations in
// controllers/operator/clustermanager.
//
// Stricter than the contract are: the names of clusters, the permission to revoke acceptance
// (the same as to accept), the adoption of existing namespaces, what agents may change in
// their own ManagedCluster, who may name the hosting cluster of an add-on, and who may hand
// over what an executor applied to a replica set, to other clusters or to the garbage
// collector.
package webhook
