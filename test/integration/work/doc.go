// SPDX-License-Identifier: Apache-2.0

// Package work tests the work agent between two real control planes: a hub whose
// identity holds exactly what a hub gives to an agent, and a managed
// cluster on which the agent runs under the token of its own ServiceAccount with
// the rights of config/agent. Each test has a cluster namespace, an agent and a
// namespace of its own; the list of files is the list of behaviours.
package work
