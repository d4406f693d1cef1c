// SPDX-License-Identifier: Apache-2.0

// Package membership tracks which clusters are in which sets, and which namespaces are bound
// to those sets.
//
// It keeps an in-memory index, maintained from the events of ManagedClusters,
// ManagedClusterSets and ManagedClusterSetBindings, for all loops of the hub that work with
// sets. A changed label costs one evaluation of each selector that asks for that label, and
// no more: no event scans the clusters for all sets, nor the sets for all clusters. A cluster
// takes about 200 bytes, plus 100 for each set that selects it by labels.
//
// Loops register a Listener with the changes they want to be called for. It is called after
// the index has changed, and must not block. The index is complete before the manager starts
// its loops.
//
// The package reads cache events and writes nothing. It evaluates selectors but does not
// report on them: the conditions belong to clusterset and setbinding.
package membership
