// SPDX-License-Identifier: Apache-2.0

package proxy

import "github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"

// Remedies for clusters that cannot be reached through their hub.
const (
	// CheckReach checks what leads to a cluster.
	CheckReach fleet.RemedyCode = "proxy.CheckReach"
	// GrantReach gives a user the right to reach a cluster.
	GrantReach fleet.RemedyCode = "proxy.GrantReach"
	// GrantAccount gives a user the right to act as a ManagedServiceAccount.
	GrantAccount fleet.RemedyCode = "proxy.GrantAccount"
	// LetAgentAct lets an agent with narrow rights act as an account.
	LetAgentAct fleet.RemedyCode = "proxy.LetAgentAct"
	// UpgradeAgent upgrades the agent of a cluster.
	UpgradeAgent fleet.RemedyCode = "proxy.UpgradeAgent"
	// OpenAgent turns the gate of a cluster's agent on, OpenHub that of the hub.
	OpenAgent fleet.RemedyCode = "proxy.OpenAgent"
	OpenHub   fleet.RemedyCode = "proxy.OpenHub"
)
