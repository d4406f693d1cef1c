// SPDX-License-Identifier: Apache-2.0

// Package addonkit_test runs an add-on that is written on pkg/addonkit against a real
// API server, under the token of its own ServiceAccount and with the rights that it
// needs, and plays the agents of a cluster.
package addonkit_test
