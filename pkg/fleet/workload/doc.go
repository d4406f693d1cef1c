// SPDX-License-Identifier: Apache-2.0

// Package workload checks the Deployments and pods of a hub and of agents: whether they have
// rolled out, what holds them up, and what helps.
package workload
