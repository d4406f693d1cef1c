// SPDX-License-Identifier: Apache-2.0

// Package version is the command "version": which program this is, and which
// versions run on the hub and on the managed clusters. With --client it makes
// no request and reads no kubeconfig.
package version
