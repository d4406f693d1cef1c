// SPDX-License-Identifier: Apache-2.0

// Package budget compares what benchmarks measure with the files
// test/perf/*.yaml, and measures the machine that they run on.
//
// A figure has an absolute limit, or a ratio to a calibration of the same run,
// or both: with the ratio a slow machine does not fail and a slow program does.
// Every figure is printed beside its budget, also when it holds. A figure that
// is in the file and was not measured fails the benchmark, and so does one that
// is measured and not in the file.
package budget
