// SPDX-License-Identifier: Apache-2.0

// Package naming checks and lists the names of a fleet, and suggests existing names for ones
// that do not exist.
package naming
