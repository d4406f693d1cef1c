// SPDX-License-Identifier: Apache-2.0

// Package agent holds everything that makes a cluster a managed one in the
// compact layout: namespaces, the ServiceAccount and its rights, the
// klusterlets definition, the bootstrap secret, the Deployment and the
// Klusterlet, as YAML that is embedded and changed as Go types.
//
// Objects returns them in the order in which they must be applied. The person
// who installs is cluster-admin: all static rights are applied from here, and
// the agent itself never creates a role. It is not the inventory of what has
// to go at the end: pkg/fleet/teardown finds that by the label
// open-cluster-management.io/created-by-klusterlet, which every object here
// carries.
package agent
