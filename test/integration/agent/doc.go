// SPDX-License-Identifier: Apache-2.0

// Package agent runs the real ocm-agent as a process on two real control planes.
// The agent has nothing but the token of its own ServiceAccount and the rights of
// config/agent; on the hub the test plays the administrator and gives what
// a hub gives to an agent, and nothing more. The list of files is the
// list of behaviours.
package agent
