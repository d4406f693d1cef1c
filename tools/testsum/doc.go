// SPDX-License-Identifier: Apache-2.0

// Command testsum reads what "go test -json" prints, shows it as "go test"
// itself would, and counts the tests that really ran.
//
// It prints one line a package, the output of failed tests and of packages
// that failed without one (a build that broke, a panic, a time-out), passes
// every other line through, and ends with a line "N passed, N failed, N
// skipped". A test that has subtests is counted by those. With -record it also
// appends what it saw to a file, and with -total it prints the recorded
// package lines of several runs again, the slowest of the tests that took ten
// seconds or more, and the sum of their counts.
//
// Usage, as .ci/run does it:
//
//	go test -json ./... | go run ./tools/testsum -record FILE
//	go run ./tools/testsum -total FILE
//
// The exit code is 0 when at least one test passed and none failed, 1
// otherwise, and 2 when the input could not be read.
package main
