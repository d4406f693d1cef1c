// SPDX-License-Identifier: Apache-2.0

// Package budget compares what benchmarks measure with the files
// test/perf/*.yaml, and measures the machine that they run on.
//
// A figure has an absolute limit, and a time also a ratio to a calibration of the
// same run, which holds where the machine is too slow for the limit: a figure is
// over its budget where both are exceeded. So a slow machine does not fail and a
// slow program does. Every figure is printed beside its budget, also when it holds.
// A figure that is in the file and was not measured fails the benchmark, and so
// does one that is measured and not in the file; figures of a full run may be
// missing from one that is shortened.
package budget
