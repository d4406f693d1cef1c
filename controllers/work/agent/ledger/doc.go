// SPDX-License-Identifier: Apache-2.0

// Package ledger keeps the two sides of a work: its ManifestWork on the hub and the
// AppliedManifestWork that represents it on the managed cluster.
//
// Works and Applied each hold one watch and make all writes to their kind, as merge
// patches that carry uid and resourceVersion. The result of a write is remembered until
// the watch has caught up, so that a pass never decides on a state that its own writes
// have overtaken.
//
// Only a few fields of each ManifestWork stay in memory. Whole works are kept in a cache
// that is bounded in bytes, so that drift is repaired even while the hub is unreachable;
// works dropped from the cache are read again from the hub.
//
// Claims record which works declare the same object, and which of them came first.
//
// Reads and writes: manifestworks and their status (hub), appliedmanifestworks and their
// status (managed cluster). The package decides nothing.
package ledger
