// SPDX-License-Identifier: Apache-2.0

// Package work tests the work agent between two real control planes: a hub, where the
// agent has exactly the rights that a hub grants it, and a managed cluster on which it
// runs with the token of its own ServiceAccount and the rights of config/agent. Each test
// has a cluster namespace, an agent and a namespace of its own. There is one file for
// each behaviour.
package work
