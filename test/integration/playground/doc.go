// SPDX-License-Identifier: Apache-2.0

// Package playground runs playgrounds with the real Kubernetes programs:
// control planes that are restarted, killed and cut off, and pods on the process
// node. The list of files is the list of behaviours.
package playground
