// SPDX-License-Identifier: Apache-2.0

// Package clustermanager installs a hub as its ClusterManager specifies: certificates, the
// hub's APIs, admission, and the control loops: in the compact layout in the same process, in
// the split layout in Deployments, which a second loop renders and keeps (assembly.go). It
// removes all of them when the ClusterManager is deleted.
//
// One pass goes as far as it can: certificates, then APIs until they are established, then
// admission once this process serves it, then the loops. Whatever a pass waits for is
// reported in the conditions of the ClusterManager, never only in a log. The hub does not
// start next to a hub of another distribution. When the layout was switched, admission moves
// first: to the Deployments of the split layout once they answer, or to this process, which
// then removes them and starts its loops when their pods have ended. A change of feature gates restarts the
// loops, not the process.
//
// It owns the Secrets and the ConfigMap of the webhooks' certificates, the twelve
// CustomResourceDefinitions of the hub, the six webhook configurations, and the conditions
// and the finalizer of the ClusterManager. Of the objects that the installer applies
// (config/hub), it restores its Services, the namespace of the certificates with its own role
// bindings there, and the ServiceAccount of the add-on manager, as far as its permissions
// allow; it leaves the rest alone.
//
// When the hub is removed, admission is removed first and certificates last.
package clustermanager
