// SPDX-License-Identifier: Apache-2.0

// Package reconcile is the frame that every control loop of this project
// stands in: gather, decide, execute.
//
//   - gather reads caches and returns a State, with the current time in it;
//   - Decide(State) Plan is pure: no context, client, clock or logger;
//   - Execute carries a Plan out, in one order that is the same for all loops:
//     new finalizers and the spec, objects to apply, objects to delete, one
//     status write, finalizers to drop, events.
//
// A Queue holds the keys of one Loop with a back-off per key. Two drivers feed
// it: internal/manager in ocm-hub, which keeps what it watches in one place for
// all loops, and pkg/reconcile/watch in ocm-agent. Both are built on reflectors;
// no typed clientset is linked, and the import budget holds them to that.
//
// Writes are fenced: what the caches showed may be old, so the patch of the
// reconciled object carries its uid and resourceVersion, and a delete follows a
// live read and carries that object's uid and resourceVersion. A conflict is no
// error: the loop comes again with a newer view.
//
// Public, because add-ons built with pkg/addonkit see it: what is exported keeps its
// meaning within a minor version.
package reconcile
