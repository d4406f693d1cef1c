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
//	the record of which manifests are complete, and rest
//	one status write on the hub
//
// An object of which the work wants to be told something is read again whenever
// its resourceVersion changes: that is a look without a write, and it changes
// nothing but what the status tells. What rules say of a live object, values and
// conditions, is found in one place, judge, on every path. Condition rules that a
// pass put off because they cost too much together are asked a minute later, and
// values that do not fit in the status are said to be left out.
//
// Where the work has an executor its rights are checked right before each write,
// and the write is sent as the executor (controllers/work/agent/executor).
//
// Because the record comes first, a pass that ends anywhere leaves nothing
// behind that is not recorded. A pass over a work whose objects are as they were
// left makes no request.
//
// What a pass left is remembered in little space where there is nothing special
// about it, and its digest stands on the AppliedManifestWork: a process that
// starts anew compares it with the work and with what the watches show, and
// makes no request for a work that is as it was left.
//
// Reads and writes: manifestworks, their status and events (hub);
// appliedmanifestworks and what works declare (managed cluster). Works that are
// being deleted are the business of controllers/work/agent/finalize. Contract:
// work.md sections 3 to 9.
package apply
