// SPDX-License-Identifier: Apache-2.0

// Package identity identifies an agent by the user name, groups and certificate request
// that it presents, and defines which cluster names are allowed.
//
// Everything is compared in full, never by prefix: the agent of cluster prod1 is not the
// agent of prod10. The package is pure; admission, the control loops and the plugin share
// it, so that they refuse the same requests.
//
// The reserved names are this project's own rule.
package identity
