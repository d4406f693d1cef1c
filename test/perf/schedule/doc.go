// SPDX-License-Identifier: Apache-2.0

// Package schedule measures time and memory of the placement library, and compares them
// with the budget in test/perf/schedule.yaml. It is built with the tag perf, because its
// figures mean nothing while other tests use the machine:
//
//	go test -tags perf -v ./test/perf/schedule
package schedule
