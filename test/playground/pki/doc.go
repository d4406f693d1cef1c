// SPDX-License-Identifier: Apache-2.0

// Package pki makes the certificates and keys of a playground cluster: one
// certificate authority, the serving certificate of kube-apiserver, client
// certificates, and the key that signs ServiceAccount tokens.
//
// It owns a folder of PEM files (keys with mode 0600) and reads them again when
// they exist, so a cluster that is started a second time keeps its identity and
// the kubeconfig files that people already copied keep working.
//
// It writes nothing else and talks to nobody. It is not a certificate manager:
// nothing rotates, and certificates live for ten years, because a playground is
// thrown away. Certificates of the product itself are made elsewhere.
package pki
