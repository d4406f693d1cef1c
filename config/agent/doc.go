// SPDX-License-Identifier: Apache-2.0

// Package agent holds everything that makes a cluster a managed one in the compact layout:
// namespaces, the ServiceAccount and its permissions, the klusterlets definition, the
// bootstrap secret, the Deployment and the Klusterlet, as embedded YAML that is adapted as
// Go types.
//
// Objects returns them in the order in which they must be applied. The person who installs
// is cluster-admin: all static permissions are applied from here, and the agent itself
// never creates a role. Removal does not use this list: pkg/fleet/teardown finds objects by
// the label open-cluster-management.io/created-by-klusterlet, which every object here
// carries.
package agent
