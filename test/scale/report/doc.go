// SPDX-License-Identifier: Apache-2.0

// Package report writes what a run of test/scale measured: a page in Markdown, plots in SVG
// and the raw figures as CSV. It knows nothing of Kubernetes.
package report
