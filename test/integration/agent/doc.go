// SPDX-License-Identifier: Apache-2.0

// Package agent runs the real ocm-agent as a process on two real control planes. The
// agent has only the token of its own ServiceAccount and the rights of config/agent; on
// the hub, the test plays the administrator and grants exactly what a hub grants to an
// agent. There is one file for each behaviour.
package agent
