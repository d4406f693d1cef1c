// SPDX-License-Identifier: Apache-2.0

// Package version is the command "version": it prints the versions of this program, the
// hub and the agents. With --client it makes no request and reads no kubeconfig.
package version
