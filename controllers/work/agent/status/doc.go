// SPDX-License-Identifier: Apache-2.0

// Package status builds the status of a ManifestWork from the outcome of a pass.
//
// It is pure. Build takes the current status on the hub, the outcome of each manifest in
// the order of the spec, and a time; it returns the desired status. Conditions that it
// does not know, and feedback values, stay with their manifest even when manifests are
// reordered.
//
// Fit shrinks a status that would not fit in etcd beside the work: a work of 500 KiB may
// have thousands of manifests.
//
// Conditions that condition rules made for manifests are aggregated for the work.
//
// A manifest that was not applied in this pass still has an outcome: that of the pass
// that last applied it.
package status
