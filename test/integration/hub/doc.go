// SPDX-License-Identifier: Apache-2.0

// Package hub tests the hub process on a real control plane: installed by the objects of
// config/hub alone, run in its pod by the process node, with the token and the rights of
// its own ServiceAccount, and reached by the API server through its Services. The tests
// play the agents, with real bootstrap tokens and real certificates.
//
// There is one file for each behaviour; the tests share one hub unless they break it.
package hub
