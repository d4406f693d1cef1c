// SPDX-License-Identifier: Apache-2.0

// Package finalize ends works: those that are deleted on the hub, and those
// that the hub no longer knows.
//
// Decide (pure) names the next step for one AppliedManifestWork and the work it
// stands for; a pass takes steps until one has to wait. The order is: condition Deleting, delete the AppliedManifestWork, remove
// its objects, drop its finalizer, and only when it is certainly gone drop the
// finalizer of the ManifestWork. Each step can be repeated, so that a crash between
// any two is harmless.
//
// Objects go by the delete option as it stands when the work is deleted. A work
// that vanished from the hub is given a grace before its objects go, because a
// hub that was restored from a backup has forgotten what it will soon be told
// again; whether it is really gone is then asked of the hub itself. Where many
// works vanish together (see guard.go) their objects are kept until a person
// deletes the AppliedManifestWorks, and an Event on the hub says so. Nothing goes
// either where the hub shows an older state than the one that was carried out.
//
// Reads and writes: as controllers/work/agent/apply, without applying anything.
package finalize
