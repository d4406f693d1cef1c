// SPDX-License-Identifier: Apache-2.0

// Package apitest is an API server in memory for tests of the plugin: it stores
// objects of any kind, selects, watches and merges them, and writes down every
// request that would change something. With it the text that commands print can
// be compared to the letter, and that a dry run writes nothing can be counted.
//
// It judges nothing: no schema, no admission, no rights. What depends on those
// is tested against real API servers in test/integration/fleet.
package apitest
