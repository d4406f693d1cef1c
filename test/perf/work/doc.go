// SPDX-License-Identifier: Apache-2.0

// Package work measures the work agent and compares the results with the budgets of
// test/perf/work.yaml. It is built with the tag perf, because its figures mean nothing
// while other tests use the machine:
//
//	go test -tags perf -v ./test/perf/work
//
// It prints each figure next to a calibration of the same run. With 1,000 works of ten
// manifests each, and with 20,000 objects of other owners, it measures ocm-agent as a
// process, against test/perf/work-scale.yaml.
package work
