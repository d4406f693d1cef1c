// SPDX-License-Identifier: Apache-2.0

// Package addonkit_test runs add-ons written with pkg/addonkit against a real API server,
// with the token of their own ServiceAccount and only the rights they need, and plays the
// agents of the clusters.
package addonkit_test
