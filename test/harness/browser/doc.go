// SPDX-License-Identifier: Apache-2.0

// Package browser shows pages to tests in a headless Chromium: what a page loads, what the browser
// complains about, which text a reader sees, and where the layout breaks.
//
// The browser runs in a network namespace of its own in which nothing is up, so a page can reach
// nothing but files. It is driven over a pipe. The package needs Linux, root and Debian's package
// chromium; tests that use it carry the build tag e2e.
//
// It is no framework for interactive pages: it neither clicks nor types.
package browser
