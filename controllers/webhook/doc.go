// SPDX-License-Identifier: Apache-2.0

// Package webhook is the hub's admission and conversion: mutation and
// validation of ManagedClusters, validation of ManagedClusterSets, their bindings,
// ManifestWorks and ManifestWorkReplicaSets, what a join token may create, warnings
// about rules that can never work, and the conversion of add-ons between their two
// versions, on one HTTPS port.
//
// The rules are functions of a request, of the questions they ask (may this
// user do that; what namespace is there) and of the time; the server around
// them only decodes and encodes. Every replica of the hub serves them, leader
// or not. It writes nothing but SubjectAccessReviews.
//
// Rules that are stricter than the contract are ratchets: what a stored object
// has already never keeps it from being changed otherwise. Which rules hold while
// nobody answers is said beside the webhook configurations, in
// controllers/operator/clustermanager.
//
// Beyond them: names that clusters must not have, taking acceptance back needs the
// same permission as giving it, namespaces that were there before, what agents may
// not change of their own ManagedCluster, and who may hand what an executor applied
// over to a set of works, to other clusters or to the garbage collector.
package webhook
