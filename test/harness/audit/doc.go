// SPDX-License-Identifier: Apache-2.0

// Package audit reads the requests to an API server of a test from the server's own audit
// log: who sent each one, for what, and how it was answered. Tests use it to count what
// an exchange costs.
package audit
