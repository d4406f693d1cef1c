// SPDX-License-Identifier: Apache-2.0

// Package shared maintains what all agents of a cluster share: the definitions of
// appliedmanifestworks and clusterclaims, never over those of a newer version, and the namespace
// of add-ons, which it restores after a deletion. They are labelled with one Klusterlet, whose
// removal gives them to another (pkg/fleet/teardown). The package decides; the loops that use it
// write.
//
// It also has what the loops of operators have in common that follow other clusters (Follow, Held).
package shared
