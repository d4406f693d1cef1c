// SPDX-License-Identifier: Apache-2.0

// Package ui is the only code of the plugin that knows about terminals: streams,
// colours, symbols, progress lines, tables, machine formats, questions, and how
// an error is told. Results go to stdout; everything else goes to stderr.
//
// It decides nothing about clusters and makes no request. Exit codes and the
// form of errors are an interface for scripts and do not change.
package ui
