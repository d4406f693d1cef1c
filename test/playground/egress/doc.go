// SPDX-License-Identifier: Apache-2.0

// Package egress connects kube-apiserver to the virtual network of a playground.
// kube-apiserver (EgressSelectorConfiguration, name cluster, protocol HTTPConnect over a
// unix socket) sends "CONNECT address:port" for every Service, pod or node that it
// connects to: webhooks, conversion, aggregated APIs, `kubectl logs`, and the proxy verbs
// of the API. The proxy asks a resolver for the loopback address behind it and splices
// the connections.
//
// It owns its connections and nothing else. For a destination without a process, it
// answers with a status line that says so, which kube-apiserver shows in its error. It is
// not a proxy for programs: it serves on a socket that only the cluster's owner can open,
// and dials loopback only.
package egress
