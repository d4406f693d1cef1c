// SPDX-License-Identifier: Apache-2.0

// Package hosting runs the hubs of other clusters here: those of ClusterManagers in mode Hosted,
// each in the namespace that has its name.
//
// The Secret external-hub-kubeconfig of that namespace leads to the hub. There the operator applies
// what an installer applies to a hub, except for what runs it, and a ClusterManager
// "cluster-manager" with the same spec. Here it applies the Services and the Deployment of one hub
// process, whatever the layout of the operator, which makes the rest of the hub as any hub process
// does. The process has a token of its account on the hub, which is renewed; it never gets the
// kubeconfig of the Secret. The conditions of the hub's ClusterManager become those of the
// ClusterManager here.
//
// It watches what it applies on both sides and puts it back. When the ClusterManager is deleted,
// the process ends first, then the hub is removed with the kubeconfig of the Secret, and what is
// here comes last. It owns these objects and the status and the finalizer of the ClusterManagers; it
// writes neither the namespace nor the Secret. It has permissions only in namespaces in which an
// administrator has bound the role cluster-manager-hosting.
package hosting
