// SPDX-License-Identifier: Apache-2.0

// Package kubeconfig reads, compares and builds the kubeconfigs that are kept in secrets:
// the bootstrap kubeconfig that a cluster joins with, and the hub kubeconfig that an
// agent keeps.
//
// The content of a secret is untrusted, so only what a connection needs is accepted:
// input is bounded, only the current context is read, exec plugins, auth providers,
// impersonation and insecure connections are rejected. The only accepted file references are
// tls.crt and tls.key of a hub kubeconfig, which mean the keys of the same secret, and, where
// the secret is mounted, files in its own directory. No other file that the content names is
// ever opened.
//
// It does not load users' kubeconfig files: the plugin uses clientcmd for those.
package kubeconfig
