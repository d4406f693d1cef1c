// SPDX-License-Identifier: Apache-2.0

package join

import "github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"

// Remedies for joining a cluster.
const (
	// AcceptThere names the hub, or accepts the cluster there.
	AcceptThere fleet.RemedyCode = "join.AcceptThere"
	// Adopt takes the cluster over from another distribution.
	Adopt fleet.RemedyCode = "join.Adopt"
	// AdoptAgent takes the agent over from another distribution, instead of upgrading it.
	AdoptAgent fleet.RemedyCode = "join.AdoptAgent"
	// AskForToken joins again with a token from the administrator.
	AskForToken fleet.RemedyCode = "join.AskForToken"
	// AwaitCluster waits until a cluster is gone from the hub.
	AwaitCluster fleet.RemedyCode = "join.AwaitCluster"
	// FinishUnjoin completes an unjoin.
	FinishUnjoin fleet.RemedyCode = "join.FinishUnjoin"
	// NameAddress gives the address of the hub.
	NameAddress fleet.RemedyCode = "join.NameAddress"
	// NameHub names the hub in one of the possible ways.
	NameHub fleet.RemedyCode = "join.NameHub"
	// NameHubContext names the hub by its context.
	NameHubContext fleet.RemedyCode = "join.NameHubContext"
	// ManageOther names another cluster to manage, or joins the hosting one itself.
	ManageOther fleet.RemedyCode = "join.ManageOther"
	// NameManaged gives the kubeconfig of the cluster that joins with a hosted agent.
	NameManaged fleet.RemedyCode = "join.NameManaged"
	// NameProxyCA names the CA of the proxy.
	NameProxyCA fleet.RemedyCode = "join.NameProxyCA"
	// OtherHub turns the cluster into a hub, or uses another one.
	OtherHub fleet.RemedyCode = "join.OtherHub"
	// OtherKlusterlet removes the agent that the Klusterlet declares, or uses another Klusterlet.
	OtherKlusterlet fleet.RemedyCode = "join.OtherKlusterlet"
	// OtherName uses another name, or takes this one from its agent.
	OtherName fleet.RemedyCode = "join.OtherName"
	// PublishAgain has the hub publish its address, or goes on without.
	PublishAgain fleet.RemedyCode = "join.PublishAgain"
	// ReachableHub uses an address of the hub that agents can reach.
	ReachableHub fleet.RemedyCode = "join.ReachableHub"
	// TakeName takes the name from its agent, which seems to be this cluster's own, or uses
	// another name.
	TakeName fleet.RemedyCode = "join.TakeName"
	// UnjoinFirst unjoins the cluster from its current hub, or moves it.
	UnjoinFirst fleet.RemedyCode = "join.UnjoinFirst"
	// UnjoinKlusterlet unjoins the cluster from its current hub, or uses the Klusterlet that it
	// is joined by.
	UnjoinKlusterlet fleet.RemedyCode = "join.UnjoinKlusterlet"
	// UnjoinOrAdd unjoins the cluster from its current hub, moves it, or joins a further hub.
	UnjoinOrAdd fleet.RemedyCode = "join.UnjoinOrAdd"
)
