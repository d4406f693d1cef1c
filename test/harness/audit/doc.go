// SPDX-License-Identifier: Apache-2.0

// Package audit reads what an API server of a test was asked, from the server's
// own audit log: who asked, for what, and how it was answered. Tests count with it
// what an exchange costs.
package audit
