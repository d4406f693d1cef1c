// SPDX-License-Identifier: Apache-2.0

// Package pki creates the certificates and keys of a playground cluster: one certificate
// authority, the serving certificate of kube-apiserver, client certificates, and the key
// that signs ServiceAccount tokens.
//
// It owns a folder of PEM files (keys with mode 0600) and reuses existing ones, so that a
// cluster that is started again keeps its identity and copied kubeconfig files keep
// working.
//
// It writes nothing else and opens no connections. It is not a certificate manager:
// nothing rotates, and certificates live for ten years, because a playground is
// temporary. Certificates of the product itself are created elsewhere.
package pki
