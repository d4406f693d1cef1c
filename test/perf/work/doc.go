// SPDX-License-Identifier: Apache-2.0

// Package work measures the work agent and compares what it finds with the
// budgets of test/perf/work.yaml. It is built with the tag perf, because its
// figures mean nothing while other tests use the machine:
//
//	go test -tags perf -v ./test/perf/work
//
// It prints each figure beside a calibration of the same run. With 1,000 works
// of ten manifests, and beside 20,000 objects of others, it measures ocm-agent as
// a process, against test/perf/work-scale.yaml.
package work
