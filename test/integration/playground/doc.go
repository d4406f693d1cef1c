// SPDX-License-Identifier: Apache-2.0

// Package playground runs playgrounds with the real Kubernetes programs: control planes
// that are restarted, killed and cut off, and pods on the process node. There is one file
// for each behaviour.
package playground
