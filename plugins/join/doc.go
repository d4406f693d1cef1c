// SPDX-License-Identifier: Apache-2.0

// Package join is the command "join": it makes a cluster a managed one. What it
// checks, installs and waits for is pkg/fleet's Join; this package reads flags
// and files. A token comes from a file, from standard input or from the hub's
// own context; the flag that holds it is there because the field's
// documentation has it.
package join
