// SPDX-License-Identifier: Apache-2.0

// Package work measures the work agent and compares what it finds with the
// budgets of test/perf/work.yaml. It is built with the tag perf, because its
// figures mean nothing while other tests use the machine:
//
//	go test -tags perf -v ./test/perf/work
//
// It prints each figure beside a calibration of the same run. Memory is measured
// on the whole agent process elsewhere.
package work
