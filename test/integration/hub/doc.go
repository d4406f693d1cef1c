// SPDX-License-Identifier: Apache-2.0

// Package hub shows the hub process at work on a real control plane: installed
// by the objects of config/hub alone, run as its pod by the process node, with
// the token and the rights of its own ServiceAccount, and reached by the API
// server through its Services. Agents are played by the tests, with real
// bootstrap tokens and real certificates.
//
// One file a behaviour; the tests share one hub unless they break it.
package hub
