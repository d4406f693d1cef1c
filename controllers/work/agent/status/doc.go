// SPDX-License-Identifier: Apache-2.0

// Package status makes the status of a ManifestWork from what a pass found.
//
// It is pure. Build takes the status as it stands on the hub, the outcome of
// each manifest in the order of the spec, and a time; it returns the status as
// it shall be. Conditions that it does not know, and feedback values, survive
// with their manifest also when manifests change places.
//
// Fit makes a status smaller that etcd would not take beside the work: a work of
// 500 KiB may have thousands of manifests.
//
// Conditions that condition rules made of manifests are summed up for the work.
//
// A manifest that was not applied in this pass still has an outcome: that of the
// pass that applied it.
package status
