// SPDX-License-Identifier: Apache-2.0

// Command testsum reads the output of "go test -json", shows it as "go test" itself
// would, and counts the tests that really ran.
//
// It prints one line for each package, the output of failed tests and of packages that
// failed without one (a broken build, a panic, a timeout), passes every other line
// through, and ends with a line "N passed, N failed, N skipped". A test with subtests is
// counted by those. With -record it also appends the results to a file, and with -total
// it prints the recorded package lines of several runs again, the slowest of the tests
// that took ten seconds or more, and the sum of their counts.
//
// Usage, as .ci/run does it:
//
//	go test -json ./... | go run ./tools/testsum -record FILE
//	go run ./tools/testsum -total FILE
//
// The exit code is 0 if at least one test passed and none failed, 1 otherwise, and 2 if
// the input could not be read.
package main
