// SPDX-License-Identifier: Apache-2.0

// Package selection tells what ClusterManagementAddOns ask for: whether the hub is
// to install them, by which placements, and which clusters these select.
//
// A placement that is missing selects nothing; one that has no decision yet says
// nothing, which is not the same. A cluster that carries the annotation of
// clusterv1 for an add-on, or is being deleted, takes no part in it.
//
// It reads the caches of the hub and writes nothing.
package selection
