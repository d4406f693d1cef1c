// SPDX-License-Identifier: Apache-2.0

// Package app is the program "kubectl ocm": the command tree, the global flags and
// the exit code. Each command family lives in a sibling package; this one only puts
// them together.
//
// The program can be called in three ways: by kubectl as a plugin ("kubectl ocm"),
// by its own name, and as kubectl_complete-ocm, the name kubectl runs to get
// completions from a plugin.
package app
