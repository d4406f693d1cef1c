// SPDX-License-Identifier: Apache-2.0

package join

import "github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"

// What helps when a cluster is to join.
const (
	// AcceptThere names the hub, or accepts the cluster there.
	AcceptThere fleet.RemedyCode = "join.AcceptThere"
	// AskForToken joins again with a token of the administrator.
	AskForToken fleet.RemedyCode = "join.AskForToken"
	// AwaitCluster waits until a cluster is gone from the hub.
	AwaitCluster fleet.RemedyCode = "join.AwaitCluster"
	// FinishUnjoin ends what was begun.
	FinishUnjoin fleet.RemedyCode = "join.FinishUnjoin"
	// NameAddress gives the address of the hub.
	NameAddress fleet.RemedyCode = "join.NameAddress"
	// NameHub says what hub is meant, in one of the ways there are.
	NameHub fleet.RemedyCode = "join.NameHub"
	// NameHubContext says what hub is meant by its context.
	NameHubContext fleet.RemedyCode = "join.NameHubContext"
	// NameProxyCA gives the CA of the proxy.
	NameProxyCA fleet.RemedyCode = "join.NameProxyCA"
	// OtherHub makes the cluster a hub, or takes another one.
	OtherHub fleet.RemedyCode = "join.OtherHub"
	// OtherName takes another name, or takes this one from its agent.
	OtherName fleet.RemedyCode = "join.OtherName"
	// PublishAgain has the hub publish its address, or does without.
	PublishAgain fleet.RemedyCode = "join.PublishAgain"
	// ReachableHub takes an address of the hub that agents reach.
	ReachableHub fleet.RemedyCode = "join.ReachableHub"
	// TakeName takes the name from its agent, which seems to have been that of this
	// cluster, or takes another one.
	TakeName fleet.RemedyCode = "join.TakeName"
	// UnjoinFirst lets the cluster leave where it is, or takes it away from there.
	UnjoinFirst fleet.RemedyCode = "join.UnjoinFirst"
)
