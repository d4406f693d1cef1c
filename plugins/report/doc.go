// SPDX-License-Identifier: Apache-2.0

// Package report is the command "report": it writes the state of a whole fleet as one page of
// HTML. The page loads nothing and runs no script, and every plot in it has its numbers as text.
package report
