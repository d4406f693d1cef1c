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
// it: pkg/reconcile/manager (controller-runtime, in ocm-hub) and
// pkg/reconcile/watch (plain reflectors, in ocm-agent). This package imports
// neither controller-runtime nor a typed clientset, so that the agent stays
// small; the dependency budget holds it to that.
//
// Writes are fenced: what the caches showed may be old, so the patch of the
// reconciled object carries its uid and resourceVersion, and a delete follows a
// live read and carries that object's uid and resourceVersion. A conflict is no
// error: the loop comes again with a newer view.
package reconcile
