// SPDX-License-Identifier: Apache-2.0

// Package hub serves the API connect.open-cluster-management.io behind the hub's API server:
// agents open their tunnels there, and users reach the APIs of managed clusters through them, and
// those of their Services that the clusters expose.
//
// The API server authenticates users and decides what they may do; only it is let in, by its
// certificate for aggregated APIs. What arrives is trusted no further: a path that could mean
// another cluster is refused, the headers sent on are those of a list, and the user's identity is
// what package caller makes of it; Services are told none. No credential of the hub leaves it.
//
// A path may name a ManagedServiceAccount of the cluster: what the API server decides on then is the
// right to managedserviceaccounts/proxy in the namespace of the cluster, and the request goes on as
// that account and not as the user. No token of the account is read or sent.
//
// A managed cluster is not trusted either. Its answers cannot lead a client elsewhere, its agent
// opens no tunnel but its own, and requests in progress are limited for each cluster and user.
//
// Of several replicas of the hub, the one that leads holds all tunnels. The others hand the
// connections of the API server on to it, unread.
//
// It reads ManagedClusters, to cut the tunnels of those that are not accepted, and the ConfigMap
// kube-system/extension-apiserver-authentication. It writes the condition TunnelConnected.
package hub
