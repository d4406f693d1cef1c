// SPDX-License-Identifier: Apache-2.0

// Package addontest runs an add-on that is written on pkg/addonkit against a real API
// server: under an account of its own with no more rights than it is given, without
// nodes and agents. The test plays these: it says what the agent of a cluster reports
// of a work, and asks for certificates as that agent does.
//
// It is for authors, who import it from their tests; docs/guides/addon.md shows one.
// Kubernetes is built once a machine, see package harness.
package addontest
