// SPDX-License-Identifier: Apache-2.0

// Package instance caches what the add-on loops need of ManagedClusterAddOns and of the
// ManifestWorks of add-ons: indexed by add-on, in little memory, with one watch for each
// kind. It only reads.
//
// The hub holds tens of thousands of them. Strings that they share are stored once; of works
// only the configuration hashes and their readiness are kept. Resource versions are kept for
// optimistic locking of writes.
package instance
