// SPDX-License-Identifier: Apache-2.0

// Package budget compares what benchmarks measure with the files
// test/perf/*.yaml, and measures the machine that they run on.
//
// A figure has an absolute limit. A time also has a ratio to a calibration of the same
// run, for machines that are too slow for the limit: it is over budget when it exceeds
// both, so that a slow program fails and a slow machine does not. Every figure is printed
// next to its budget, even when it passes. A figure in the file that was not measured
// fails the benchmark, and so does one that was measured and is not in the file; a
// shortened run may leave out figures of a full one.
package budget
