// SPDX-License-Identifier: Apache-2.0

// Package naming knows the names of a fleet: which are well formed, which there
// are, and which may be meant where there is none of a name.
package naming
