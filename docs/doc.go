// SPDX-License-Identifier: Apache-2.0

// Package docs has no code. Its tests keep the documentation true: they compare the
// pages with the tree, the API and the tests.
package docs
