// SPDX-License-Identifier: Apache-2.0

// Command reference writes the parts of the documentation that follow from the
// program: a page for each command (docs/cli), and the tables of commands, flags
// and fields between markers in pages that people write (docs/cli/README.md and
// docs/reference).
//
// It reads the tree of commands and the definitions in config/crd, and owns the
// pages of docs/cli but for its README.md, and what stands between the markers:
//
//	<!-- begin SOURCE ARGUMENT... -->
//	<!-- end -->
//
// where SOURCE is commands; flags; kind NAME, with the name of a definition; or
// fields NAME VERSION PATH..., where what is below a path is left out, because
// another page tells it. The result depends on nothing but the source tree.
//
// Usage, as "make generate" does it:
//
//	go run ./tools/reference [-root DIR]
package main
