// SPDX-License-Identifier: Apache-2.0

// Package egress is the way from kube-apiserver into a playground's invented
// network. kube-apiserver (EgressSelectorConfiguration, name cluster, protocol
// HTTPConnect over a unix socket) sends "CONNECT address:port" for every
// Service, pod or node that it wants to reach: webhooks, conversion, aggregated
// APIs, `kubectl logs`, and the proxy verbs of the API. The proxy asks a
// resolver which loopback address stands behind and splices the connection.
//
// It owns its connections and nothing else. A destination that nothing stands
// behind is answered with a status line that says so, which kube-apiserver
// shows in its error. It is no proxy for programs: it serves on a socket that
// only the cluster's owner can open, and dials loopback only.
package egress
