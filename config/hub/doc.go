// SPDX-License-Identifier: Apache-2.0

// Package hub holds everything that an installer applies to make a cluster a hub, in the
// compact or the split layout: namespaces, the ServiceAccount of the hub process and its permissions,
// the clustermanagers API, Services, the Deployment, the identity with which new clusters
// register, and the ClusterManager, which configures the hub.
//
// The manifests are static files; Objects adapts what differs between installations and
// returns them in the order in which to apply them. The hub process itself creates the
// rest: certificates, the other APIs, admission, and in the split layout the components, whose
// accounts, roles and Services are here too. This package does no I/O.
package hub
