// SPDX-License-Identifier: Apache-2.0

// Package instance keeps what the add-on loops look at of ManagedClusterAddOns and
// of the ManifestWorks of add-ons: by add-on, in little space, by a watch of its
// own each. It only reads.
//
// The hub holds tens of thousands of them. The words that they have in common are
// held once; of works only their hashes and whether they are in place is kept.
// Resource versions are kept, so that what is written is fenced by them.
package instance
