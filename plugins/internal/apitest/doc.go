// SPDX-License-Identifier: Apache-2.0

// Package apitest is an in-memory API server for tests of the plugin. It stores objects
// of any kind, selects, watches and merges them, and records every request that would
// change something. With it, tests can compare the exact output of commands, and check
// that a dry run writes nothing.
//
// It has no schemas, admission or authorization. Tests that depend on those use real
// API servers, in test/integration/fleet.
package apitest
