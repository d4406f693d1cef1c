// SPDX-License-Identifier: Apache-2.0

// Package check is the command "check": it finds what keeps a fleet from working and
// names the cause and the fix, without reading logs. The checks are in pkg/fleet/check;
// only the search of PATH for shadowing programs is done here.
package check
