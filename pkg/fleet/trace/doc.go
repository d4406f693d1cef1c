// SPDX-License-Identifier: Apache-2.0

// Package trace follows an object on a managed cluster back to the work that applied it, and
// to where that comes from.
package trace
