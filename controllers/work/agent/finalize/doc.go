// SPDX-License-Identifier: Apache-2.0

// Package finalize cleans up works that are deleted on the hub and works that the hub no
// longer knows.
//
// Decide (pure) names the next step for one AppliedManifestWork and its ManifestWork; a
// pass takes steps until one has to wait. The order is: delete the AppliedManifestWork,
// remove its objects, drop its finalizer, and only when it is certainly gone drop the
// finalizer of the ManifestWork. Each step can be repeated, so that a crash between any
// two is harmless. While objects wait, for example for finalizers, the ManifestWork has
// the condition Deleting.
//
// Objects are removed according to the delete option in force when the work is deleted. A
// work that vanished from the hub is given a grace period before its objects are removed,
// because a hub that was restored from a backup may soon get the work back; the hub
// itself is then asked whether the work is really gone. A work that was deleted while it got
// its finalizer, before anything was reported about it, has no grace. Where many works vanish
// together (see guard.go), their objects are kept until a person deletes the
// AppliedManifestWorks, and an Event on the hub reports it. Nothing is removed either while
// the hub shows an older state than the one that was applied.
//
// Reads and writes: as controllers/work/agent/apply, without applying anything.
package finalize
