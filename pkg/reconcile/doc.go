// SPDX-License-Identifier: Apache-2.0

// Package reconcile is the frame of every control loop in this project: gather, decide,
// execute.
//
//   - gather reads caches and returns a State, which includes the current time;
//   - Decide(State) Plan is pure: no context, client, clock or logger;
//   - Execute carries out a Plan in an order that is the same for all loops: new
//     finalizers and the spec, then objects to write and delete, one status write,
//     finalizers to drop, events.
//
// A Queue holds the keys of one Loop and backs off per key. Two drivers feed it:
// internal/manager in ocm-hub, whose loops share one set of watches, and
// pkg/reconcile/watch in ocm-agent. Both are built on reflectors; no typed clientset is
// linked, and the import budget enforces that.
//
// Writes are fenced, because caches may be stale: a patch of the reconciled object carries
// its uid and resourceVersion, and a delete follows a live read and carries the uid and
// resourceVersion it found. A conflict is not an error: the key is requeued and reconciled
// with a newer view.
//
// The package is public because add-ons built with pkg/addonkit use it: exported names keep
// their meaning within a minor version.
package reconcile
