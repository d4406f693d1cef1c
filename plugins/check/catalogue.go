// SPDX-License-Identifier: Apache-2.0

package check

import (
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/check"
)

// entry is one check of the catalogue.
type entry struct {
	Code string `json:"code"`
	// Title is what is checked, Text what it means and what to do when it fails.
	Title string `json:"title"`
	Text  string `json:"text"`
}

// catalogue are all checks, by code.
func catalogue() []entry { return append(hubCodes(), otherCodes()...) }

// hubCodes are those of this machine, of a hub and of its clusters.
func hubCodes() []entry {
	return []entry{
		{check.CodeShadowed, "nothing on PATH hides a command",
			"kubectl runs a program kubectl-ocm-X in place of \"kubectl ocm X\". Remove or rename it, unless it is wanted."},
		{check.CodeHubReached, "the hub's API server answers", "Everything goes through it. Look at the address of the context, the network, the proxy and your login."},
		{check.CodeHubInstalled, "the hub is installed as it was declared", "The conditions of clustermanager/" + operatorv1.DefaultClusterManagerName +
			" say what the hub could not apply, and why."},
		{check.CodeHubRuns, "the hub's pods run", "Without them nothing is accepted, renewed or scheduled. Clusters go on with what they have."},
		{check.CodeHubAddress, "other machines can reach the hub",
			"The hub publishes the address that agents use. One that means this machine only is of no use elsewhere: hub init --apiserver-url."},
		{check.CodeHubKinds, "the hub's kinds are served", "A definition that is not established makes its objects unreadable for hub, agents and people."},
		{check.CodeHubAdmission, "the hub's admission answers",
			"It keeps agents and people from what they have no right to. Each webhook is asked by a write that is never stored. \"kubectl ocm hub init\" puts it back."},
		{
			check.CodeHubSigner,
			"certificates are signed",
			"kube-controller-manager signs the agents' certificates. While it is away nobody can join and certificates run out.",
		},
		{check.CodeHubForeign, "the hub's deployment is as it was installed",
			"Another container, image or number of replicas is not what the hub was tested with, and may read its credentials. \"kubectl ocm hub init\" puts it back."},
		{check.CodeClusterWaits, "clusters are let in or refused", "A cluster asks to join. Compare the key that join printed, then accept or deny it."},
		{check.CodeClusterRequest, "certificate requests are answered",
			"A cluster that is accepted waits for its certificate. accept tells who asked and checks the request."},
		{check.CodeClusterJoining, "accepted clusters have joined", "The agent has not reported yet. Look at it on its own cluster."},
		{check.CodeClusterLease, "clusters report", "The hub has not heard of the cluster for longer than five lease durations. Its works go on; nothing new reaches it."},
		{check.CodeClusterUnwell, "clusters are healthy", "The agent reports that its own API server does not answer as it should."},
		{check.CodeClusterDenied, "no cluster is denied", "Somebody took the acceptance back. accept lets it in again."},
		{check.CodeClusterLeaves, "no cluster hangs in its deletion",
			"Add-ons go first, then works, which the agent removes. A cluster that is gone for good is removed with --force."},
		{check.CodeClusterClock, "clocks agree", "Leases and certificates go by clocks. Set the cluster's clock, by NTP for example."},
		{check.CodeClusterName, "names are used by one cluster",
			"Another agent asks under a name that is in use: the same cluster installed again, or another one. A person says which, by accept."},
		{check.CodeClusterRights, "accepted clusters have their namespace",
			"The hub makes it when it accepts the cluster. Where it is missing, the hub is not running or was kept from it."},
		{check.CodeClusterWorks, "works are applied and available", "\"kubectl ocm work list\" shows the first manifest that fails, and why."},
		{check.CodeClusterSet, "clusters are in sets that exist", "The label " + clusterv1.LabelClusterSet +
			" names a set that nobody has made: no placement finds the cluster by it."},
		{check.CodeClusterVersion, "agents go with the hub", "Agent and hub of one minor version are tested together. join with this program brings an agent up to date."},
	}
}

// otherCodes are those of agents, placements and add-ons.
func otherCodes() []entry {
	return []entry{
		{check.CodeSpokeReached, "the cluster's API server answers", "Look at the address of the context, the network, the proxy and your login."},
		{check.CodeSpokeAgent, "the agent's pod runs", "Without it nothing new is applied, and the hub calls the cluster Unknown after five lease durations."},
		{check.CodeSpokeKlusterlet, "the agent is well", "The conditions of the klusterlet say what the agent hangs on: its bootstrap kubeconfig, the hub, its rights."},
		{check.CodeSpokeCertificate, "the agent's certificate is good",
			"It is renewed at three quarters of its life. One that ran out is asked for anew, and somebody accepts that."},
		{check.CodeSpokeHub, "the hub answers under the agent's address",
			"Seen from this machine, by the CA that the agent has pinned. After a move of the hub, type the join once more."},
		{check.CodeSpokeIdentity, "the klusterlet names the cluster that the agent is",
			"The agent is who its certificate says. A klusterlet that names another cluster was edited, by another installer for example; put the name back."},
		{check.CodePlacementNoBinding, "namespaces with placements are bound to a set",
			"A placement selects from the cluster sets that its namespace is bound to. Without a binding it selects nothing: clusterset bind."},
		{check.CodePlacementUnbound, "placements name sets that they can select from",
			"A set that is named has to be there, and bound to the namespace; one whose selector cannot be read gives nobody new."},
		{check.CodePlacementEmpty, "the sets of placements have clusters", "Put clusters into the set, or let the placement select from another one."},
		{check.CodePlacementPredicate, "predicates fit clusters",
			"\"kubectl ocm placement explain\" says of every cluster which requirement does not hold, and what is there instead."},
		{check.CodePlacementCount, "placements select as many clusters as they want",
			"Predicates, taints and spread constraints leave fewer than are wanted. \"kubectl ocm placement explain\" names what keeps each one out."},
		{check.CodePlacementSpec, "placements can be followed",
			"The spec has a mistake: an unknown prioritizer or operator, an expression that does not compile. The hub keeps the last decisions; correct the field that is named."},
		{check.CodePlacementScores, "scores of add-ons are there",
			"A placement ranks by a score that no cluster has, or that has expired: it counts 0. The add-on that writes it is not installed or not well."},
		{check.CodePlacementDecided, "placements are decided", "The hub writes a condition within a second. Where it does not, look at the hub itself."},
		{check.CodeAddOnRegistered, "add-ons are registered and managed",
			"An add-on needs a ClusterManagementAddOn, or nothing of it is deployed. Its lifecycle annotation says whether the hub installs it."},
		{check.CodeAddOnPlacement, "the placements of add-ons are there and select",
			"An install strategy brings an add-on to what its placements select. One that is missing or undecided brings it nowhere and takes it from nowhere."},
		{check.CodeAddOnConfig, "configurations of add-ons are there and supported",
			"A configuration that is not there, or that the add-on's controller does not read, holds up the rollout on its clusters."},
		{check.CodeAddOnRegistration, "add-ons are registered on their clusters",
			"The add-on's controller says who its agent is and gives it rights. What it may not give somebody else has to, by the commands that it names."},
		{check.CodeAddOnCredential, "agents of add-ons have credentials",
			"The certificate request of an agent is approved by the add-on's controller, or by a person: kubectl certificate approve."},
		{check.CodeAddOnWorks, "manifests of add-ons are applied",
			"The cluster refused an object, or the works could not be made. \"kubectl ocm work list\" shows the first manifest that fails, and why."},
		{check.CodeAddOnHealth, "add-ons work on their clusters",
			"The agent renews a lease in its namespace every minute, or its workloads are probed. Look at its pods on the cluster."},
		{check.CodeAddOnLeaves, "no add-on hangs in its deletion",
			"A hook runs on the cluster before an add-on goes. One that cannot run is given up at a deadline: the annotation " +
				addonv1alpha1.AnnotationHookDeadline + "."},
		{check.CodeAddOnCluster, "clusters of add-ons are there",
			"An add-on lives in the namespace of its cluster, and a hosted one needs the cluster that hosts it, too."},
		{check.CodeAddOnTemplate, "templates of add-ons are there and render",
			"\"kubectl ocm addon create --render CLUSTER\" shows what a cluster would get, and what is wrong with it."},
		{check.CodeAddOnToken, "add-ons under the token driver get tokens",
			"A hub with narrow rights for add-ons makes tokens only where a person lets it, because that right reaches every account: bind ClusterRole cluster-manager-token-driver."},
		{check.CodeAddOnRollout, "rollouts of add-ons go on",
			"More clusters are out of time than maxFailures allows. When they recover it goes on; \"kubectl ocm addon resume\" lets it go on without them."},
	}
}
