// SPDX-License-Identifier: Apache-2.0

// Package ui is the only code of the plugin that knows about terminals: streams,
// colours, symbols, progress lines, tables, machine-readable formats, prompts, and the
// wording of errors and fixes. Results go to stdout, everything else to stderr.
//
// It makes no decisions about clusters and no requests. Exit codes and the layout of
// errors are an interface for scripts and do not change.
package ui
