// SPDX-License-Identifier: Apache-2.0

// Package check is the command "check": it names what keeps a fleet from
// working, each with its cause and its fix, without reading a log. The checks
// are pkg/fleet's; only the look at the programs on PATH is made here.
package check
