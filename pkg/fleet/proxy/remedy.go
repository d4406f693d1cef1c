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
	// GrantServices gives a user the right to reach the Services that clusters expose, GrantList the right to read
	// which ones a cluster exposes.
	GrantServices fleet.RemedyCode = "proxy.GrantServices"
	GrantList     fleet.RemedyCode = "proxy.GrantList"
	// ExposeService adds a Service to the list of a cluster.
	ExposeService fleet.RemedyCode = "proxy.ExposeService"
	// EditList edits the list of a cluster.
	EditList fleet.RemedyCode = "proxy.EditList"
	// ListServices shows what a cluster exposes, ShowServices the Services of a namespace.
	ListServices fleet.RemedyCode = "proxy.ListServices"
	ShowServices fleet.RemedyCode = "proxy.ShowServices"
	// ShowEndpoints shows whether pods are behind a Service, SpeakHTTP asks it without TLS.
	ShowEndpoints fleet.RemedyCode = "proxy.ShowEndpoints"
	SpeakHTTP     fleet.RemedyCode = "proxy.SpeakHTTP"
	// ForwardPort leads to a Service by a port that is forwarded to one of its pods.
	ForwardPort fleet.RemedyCode = "proxy.ForwardPort"
	// AdoptSet prints what the add-on cluster-proxy exposes on the clusters of a set.
	AdoptSet fleet.RemedyCode = "proxy.AdoptSet"
)
