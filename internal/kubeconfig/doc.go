// SPDX-License-Identifier: Apache-2.0

// Package kubeconfig reads, compares and builds the kubeconfigs that lie in
// secrets: the bootstrap kubeconfig that a cluster joins with, and the hub
// kubeconfig that an agent keeps.
//
// A secret is written by somebody else, so nothing in it is trusted further
// than a connection needs: input is bounded, only the current context is read,
// exec plugins, auth providers, impersonation and insecure connections are
// refused, and no file that the content names is ever opened. The one file
// reference that is understood is tls.crt and tls.key of a hub kubeconfig,
// which mean the keys of the same secret.
//
// It is not a loader of people's kubeconfig files: the plugin uses clientcmd
// for those.
package kubeconfig
