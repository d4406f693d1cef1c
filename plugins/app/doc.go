// SPDX-License-Identifier: Apache-2.0

// Package app is the program "kubectl ocm": the tree of commands, the flags
// that all of them have, and the exit code. One folder beside this one holds
// one command family; this package only puts them together.
//
// It knows three ways of being called: by kubectl as a plugin ("kubectl ocm"),
// by its own name, and as kubectl_complete-ocm, the name under which kubectl
// asks a plugin for completions. Contract: design rules of the command line.
package app
