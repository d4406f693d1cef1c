// SPDX-License-Identifier: Apache-2.0

// Package membership knows which clusters are in which sets, and which
// namespaces are bound to those sets.
//
// It keeps an index in memory that the events of ManagedClusters,
// ManagedClusterSets and ManagedClusterSetBindings maintain, for all loops of
// the hub that work by sets. A changed label costs a look at the selectors that
// ask for that label and no more: no event scans the clusters for all sets, nor
// the sets for all clusters. A cluster costs about 200 bytes and 100 for each
// set that selects it by labels.
//
// Loops tell it by a Listener what they want to be called for. They are called
// after the index has changed, and must not block. The index is complete before
// the manager starts its loops.
//
// It reads the caches' events and writes nothing. It judges selectors, but tells
// nobody: the conditions are those of clusterset and setbinding.
package membership
