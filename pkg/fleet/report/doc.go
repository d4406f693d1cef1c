// SPDX-License-Identifier: Apache-2.0

// Package report reads what a report on a whole fleet shows, with the requests of the lists and of
// the check.
package report
