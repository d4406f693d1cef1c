// SPDX-License-Identifier: Apache-2.0

// Package addontest runs an add-on written with pkg/addonkit against a real API server,
// under an account of its own with only the rights it is given, and without nodes and
// agents. The test plays the agents: it reports the status of works and requests
// certificates as they do.
//
// It is for add-on authors, who import it in their tests; docs/guides/addon.md shows one.
// Kubernetes is built once per machine; see package harness.
package addontest
