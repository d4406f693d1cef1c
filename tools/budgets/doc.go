// SPDX-License-Identifier: Apache-2.0

// Command budgets measures the source tree against the project's budgets, and fails when
// one is exceeded.
//
// It reads every Go file of the checkout (the root module and the modules below it), the
// import graph by "go list", and the binaries in -bin. It owns the checked-in dependency
// lists in tools/budgets/deps and writes nothing else, and those only with -update. Files
// that are generated, vendored or named _test.go are not counted.
//
// The figures: package and exported comments, comments of API fields, length and
// parameters of functions, length of files, duplicated lines, licence headers, names,
// depth and files of packages, documents named in comments, exports that no other package
// uses, commit subjects, forbidden imports, the dependency list of each binary, and the
// size of each binary.
//
// It is not a linter: it leaves to golangci-lint what that finds (.golangci.yaml).
//
// Usage, as "make budgets" does it:
//
//	go run ./tools/budgets [-root DIR] [-bin DIR] [-update] [-all]
//
// The exit code is 0 if every figure is within its budget, 1 if one is not, and 2 if the
// tree could not be measured.
package main
