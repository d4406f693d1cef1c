// SPDX-License-Identifier: Apache-2.0

// Package ledger keeps the two sides of a work: its ManifestWork on the hub and
// the AppliedManifestWork that stands for it on the managed cluster.
//
// Works and Applied each hold one watch and make all writes to their kind, as
// merge patches that carry uid and resourceVersion. What a write returned is
// remembered until the watch has caught up, so that a pass never decides on
// what it has itself overtaken.
//
// Of a ManifestWork only a few words stay in memory; whole works are kept in a
// cache that is bounded in bytes, so that drift is repaired also while the hub
// is away, and are read again from the hub when they have been dropped.
//
// Claims tell which works declare one object, and which came first.
//
// Reads and writes: manifestworks and their status (hub), appliedmanifestworks and
// their status (managed cluster). It decides nothing.
package ledger
