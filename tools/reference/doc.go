// SPDX-License-Identifier: Apache-2.0

// Command reference writes the parts of the documentation that are generated from the
// program: a page for each command (docs/cli), and the tables of commands, flags and
// fields between markers in hand-written pages (docs/cli/README.md and docs/reference).
//
// It reads the tree of commands and the definitions in config/crd, and owns the pages of
// docs/cli except its README.md, and the text between the markers:
//
//	<!-- begin SOURCE ARGUMENT... -->
//	<!-- end -->
//
// where SOURCE is commands; flags; kind NAME, with the name of a definition; or fields
// NAME VERSION PATH..., where the fields below a path are omitted, because another page
// documents them. The result depends only on the source tree.
//
// Usage, as "make generate" does it:
//
//	go run ./tools/reference [-root DIR]
package main
