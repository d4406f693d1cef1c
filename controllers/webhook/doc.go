// SPDX-License-Identifier: Apache-2.0

// Package webhook is the hub's admission and conversion: mutation and
// validation of ManagedClusters, validation of ManagedClusterSetBindings and
// ManifestWorks, and the conversion of add-ons between their two versions, on
// one HTTPS port.
//
// The rules are functions of a request, of the questions they ask (may this
// user do that; what namespace is there) and of the time; the server around
// them only decodes and encodes. Every replica of the hub serves them, leader
// or not. It writes nothing but SubjectAccessReviews.
//
// Contract: registration.md 4, work.md 11, addon.md 2.7. Beyond them: names
// that clusters must not have, taking acceptance back needs the same permission
// as giving it, namespaces that were there before, and what agents may not
// change of their own ManagedCluster.
package webhook
