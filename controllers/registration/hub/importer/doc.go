// SPDX-License-Identifier: Apache-2.0

// Package importer installs the agent on clusters that Cluster API has provisioned.
//
// A ManagedCluster is imported if a Cluster of Cluster API is its own: the one that the
// annotation cluster.x-k8s.io/cluster names as NAMESPACE/NAME, otherwise the one in the
// namespace of its name that has the same name. Once that Cluster is Provisioned, the loop
// takes the kubeconfig that Cluster API keeps in a Secret, and applies with it what "join"
// would apply, with a bootstrap token of a day. From then on the cluster is as any other: its
// agent asks for a certificate, and an administrator accepts it.
//
// The loop owns the condition ManagedClusterImportSucceeded. It never touches a cluster again
// that was imported or has joined, and none that belongs to another hub or has another name.
// A cluster that registered itself with a bootstrap token is left to do so: what such a
// token may name must not decide where the hub installs something.
//
// It reads ManagedClusters and Clusters from caches, and when a cluster is due, each Secret by
// name. The kind Cluster may be missing or appear later. The loop runs while the gate
// ClusterImporter is on; the hub has the rights for it only if an installer or an
// administrator granted them (hub.AllowImporter).
//
// What the kubeconfig and the cluster behind it say is not trusted: a kubeconfig that starts
// programs or names files is refused, answers are limited in size and time, and their text is
// shortened before it is shown.
package importer
