// SPDX-License-Identifier: Apache-2.0

// Package selection reads what ClusterManagementAddOns ask for: whether the hub installs
// them, with which placements, and which clusters these select.
//
// A missing placement selects nothing; what one without a decision will select is still
// unknown, which is not the same. A cluster that excludes an add-on with an annotation, or is
// being deleted, does not get it.
//
// It reads the caches of the hub and writes nothing.
package selection
