// SPDX-License-Identifier: Apache-2.0

// Package settings reads what the spec of a Klusterlet asks of the agent, however the agent is
// run: its settings, its feature gates, what is invalid, and what no agent supports. It is pure.
package settings
