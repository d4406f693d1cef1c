// SPDX-License-Identifier: Apache-2.0

// Package hub holds everything that an installer applies to make a cluster a
// hub in the compact layout: namespaces, the ServiceAccount of the hub process
// with its rights, the clustermanagers API, Services, the Deployment, the
// identity that new clusters register with, and the ClusterManager that says
// what the hub is to be.
//
// The manifests are static files; Objects changes in them what differs between
// installations and returns them in the order to apply. The hub process itself
// makes the rest: certificates, the other APIs, admission. It reads and writes
// nothing.
package hub
