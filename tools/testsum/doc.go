// SPDX-License-Identifier: Apache-2.0

// Command testsum reads the output of "go test -json", shows it as "go test" itself
// would, and counts the tests that really ran.
//
// It prints one line for each package, the output of failed tests and of packages that
// failed without one (a broken build, a panic, a timeout), passes every other line
// through, and ends with a line "N passed, N failed, N skipped". A test with subtests is
// counted by those.
//
// The output of a failed test begins with the messages of its failed assertions, whole,
// or its panic or data race. A hundred lines around it follow; those of a test that logs
// much are left out, because a log that is cut would end before the reason.
//
// With -record it also appends the results to a file, and with -total it prints the
// recorded package lines of several runs again, the slowest of the tests that took ten
// seconds or more, the beginning of the reason of each failure, and the sum of their
// counts.
//
// Usage, as .ci/run does it:
//
//	go test -json ./... | go run ./tools/testsum -record FILE
//	go run ./tools/testsum -total FILE
//
// The exit code is 0 if at least one test passed and none failed, 1 otherwise, and 2 if
// the input could not be read.
package main
