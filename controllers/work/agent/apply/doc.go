// SPDX-License-Identifier: Apache-2.0

// Package apply brings the objects of one ManifestWork to the cluster and keeps
// them there.
//
// A pass gathers the work, its AppliedManifestWork, the decoded manifests and
// what is remembered and seen of their objects; Decide (pure) says for each
// manifest whether it is left alone, looked at, or written, and what has to be
// removed; perform does it in this order:
//
//	finalizer on the ManifestWork, AppliedManifestWork
//	a look at each object that may have changed
//	the record of all objects, before any of them is written
//	writes in the order of ranks, removals in the opposite order
//	the record with the identities that the writes gave
//	one status write on the hub
//
// Because the record comes first, a pass that ends anywhere leaves nothing
// behind that is not recorded. A pass over a work whose objects are as they were
// left makes no request.
//
// Reads and writes: manifestworks, their status and events (hub);
// appliedmanifestworks and what works declare (managed cluster). Works that are
// being deleted are the business of controllers/work/agent/finalize. Contract:
// work.md sections 3 to 7.
package apply
