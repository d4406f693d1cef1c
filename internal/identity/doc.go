// SPDX-License-Identifier: Apache-2.0

// Package identity tells who an agent is by the user name, groups and
// certificate request that it comes with, and which cluster names are allowed.
//
// Everything is compared whole, never by prefix: the agent of cluster prod1 is
// not the agent of prod10. The package is pure; admission, the control loops and
// the plugin share it, so that what the one refuses the others refuse too.
//
// Names that are reserved are this
// project's own rule.
package identity
