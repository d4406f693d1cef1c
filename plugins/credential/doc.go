// SPDX-License-Identifier: Apache-2.0

// Package credential is the command "credential", which Kubernetes clients run for a token of a
// managed cluster. Its stdout holds the answer and nothing else. pkg/fleet/credential finds the
// token.
package credential
