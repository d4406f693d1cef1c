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
	// Title is what is checked. Text is what it means and what to do when it fails.
	Title string `json:"title"`
	Text  string `json:"text"`
}

// catalogue has all checks, ordered by code.
var catalogue = []entry{
	// This machine, the hub and its clusters.
	{check.CodeShadowed, "nothing on PATH hides a command",
		"kubectl runs a program kubectl-ocm-X in place of \"kubectl ocm X\". Remove or rename it, unless it is wanted."},
	{check.CodeHubReached, "the hub's API server answers",
		"Everything goes through it. Check the address in the context, the network, the proxy and your credentials."},
	{check.CodeHubInstalled, "the hub is installed as declared", "The conditions of clustermanager/" + operatorv1.DefaultClusterManagerName +
		" say what the hub could not apply, and why."},
	{check.CodeHubRuns, "the hub's pods run", "Without them nothing is accepted, renewed or scheduled. Clusters keep running what they have."},
	{check.CodeHubAddress, "other machines can reach the hub",
		"The hub publishes the address that agents use. One that works on this machine only is useless elsewhere: hub init --apiserver-url."},
	{check.CodeHubKinds, "the hub's kinds are served",
		"If a definition is not established, the hub, agents and users cannot read its objects."},
	{check.CodeHubAdmission, "the hub's admission webhooks answer",
		"They keep agents and users from what they have no right to. Each one is probed by a write that is never stored. " +
			"\"kubectl ocm hub init\" restores them."},
	{check.CodeHubSigner, "certificates are signed",
		"kube-controller-manager signs the agents' certificates. While it is down, no cluster can join and certificates expire."},
	{check.CodeHubForeign, "the hub's deployment is as installed",
		"Another container, image or number of replicas is not what the hub was tested with, and may read its credentials. " +
			"\"kubectl ocm hub init\" restores it."},
	{check.CodeClusterWaits, "no cluster waits to be accepted or denied",
		"A cluster asks to join. Compare the key with the one that join printed, then accept or deny it."},
	{check.CodeClusterRequest, "certificate requests are answered",
		"An accepted cluster waits for its certificate. accept shows who sent the request, and checks it."},
	{check.CodeClusterJoining, "accepted clusters have joined", "The agent has not reported yet. Check it on its own cluster."},
	{check.CodeClusterLease, "clusters report",
		"The hub has not heard from the cluster for more than five lease durations. Its works keep running; nothing new reaches it."},
	{check.CodeClusterUnwell, "clusters are healthy", "The agent reports that the API server of its cluster is not healthy."},
	{check.CodeClusterDenied, "no cluster is denied", "A user withdrew the acceptance. accept restores it."},
	{check.CodeClusterLeaves, "no cluster is stuck in deletion",
		"Add-ons go first, then works, which the agent removes. A cluster that is gone for good is removed with --force."},
	{check.CodeClusterClock, "clocks agree", "Leases and certificates depend on clocks. Set the cluster's clock, for example with NTP."},
	{check.CodeClusterName, "names are used by one cluster",
		"Another agent asks for a name that is in use: the same cluster installed again, or a different one. A user decides which, with accept."},
	{check.CodeClusterRights, "accepted clusters have their namespace",
		"The hub creates it when it accepts the cluster. If it is missing, the hub is not running or could not create it."},
	{check.CodeClusterWorks, "works are applied and available", "\"kubectl ocm work list\" shows the first manifest that fails, and why."},
	{check.CodeClusterSet, "clusters are in sets that exist", "The label " + clusterv1.LabelClusterSet +
		" names a set that does not exist: no placement finds the cluster through it."},
	{check.CodeClusterVersion, "agents match the hub's version",
		"Agent and hub of the same minor version are tested together. Running join with this program updates an agent."},
	// Agents, placements and add-ons.
	{check.CodeSpokeReached, "the cluster's API server answers", "Check the address in the context, the network, the proxy and your credentials."},
	{check.CodeSpokeAgent, "the agent's pod runs", "Without it nothing new is applied, and the hub reports the cluster as Unknown after five lease durations."},
	{check.CodeSpokeKlusterlet, "the agent is healthy",
		"The conditions of the klusterlet say what the agent is stuck on: its bootstrap kubeconfig, the hub, its rights."},
	{check.CodeSpokeCertificate, "the agent's certificate is valid",
		"It is renewed after three quarters of its lifetime. After it has expired, the agent asks for a new one, and a user accepts the request."},
	{check.CodeSpokeHub, "the hub answers at the agent's address",
		"Checked from this machine, with the CA that the agent has pinned. After the hub has moved, run join again."},
	{check.CodeSpokeIdentity, "the klusterlet names the agent's cluster",
		"The agent's identity is its certificate. A klusterlet that names another cluster was edited, for example by another installer; " +
			"restore the name."},
	{check.CodePlacementNoBinding, "namespaces with placements are bound to a set",
		"A placement selects from the cluster sets that its namespace is bound to. Without a binding it selects nothing: clusterset bind."},
	{check.CodePlacementUnbound, "placements name sets that they can select from",
		"A set that a placement names must exist and be bound to the namespace; one whose selector is invalid adds no new clusters."},
	{check.CodePlacementEmpty, "the sets of placements have clusters", "Add clusters to the set, or let the placement select from another one."},
	{check.CodePlacementPredicate, "predicates fit clusters",
		"\"kubectl ocm placement explain\" shows for every cluster which requirement does not hold, and what the cluster has instead."},
	{check.CodePlacementCount, "placements select as many clusters as they want",
		"Predicates, taints and spread constraints leave fewer than wanted. \"kubectl ocm placement explain\" shows what keeps each cluster out."},
	{check.CodePlacementSpec, "placements have a valid spec",
		"The spec has a mistake: an unknown prioritizer or operator, an expression that does not compile. " +
			"The hub keeps the last decisions; correct the field that is named."},
	{check.CodePlacementScores, "scores of add-ons exist",
		"A placement ranks by a score that no cluster has, or that has expired: it counts as 0. " +
			"The add-on that writes it is not installed or not healthy."},
	{check.CodePlacementDecided, "placements are decided", "The hub writes a condition within a second. If it does not, check the hub itself."},
	{check.CodeAddOnRegistered, "add-ons are registered and managed",
		"An add-on needs a ClusterManagementAddOn, or nothing of it is deployed. Its lifecycle annotation says whether the hub installs it."},
	{check.CodeAddOnPlacement, "the placements of add-ons exist and select clusters",
		"An install strategy brings an add-on to the clusters that its placements select. " +
			"A placement that is missing or undecided neither adds nor removes it anywhere."},
	{check.CodeAddOnConfig, "configurations of add-ons exist and are supported",
		"A configuration that does not exist, or that the add-on's controller does not read, blocks the rollout on its clusters."},
	{check.CodeAddOnRegistration, "add-ons are registered on their clusters",
		"The add-on's controller defines the identity of its agent and grants it rights. " +
			"Rights that it may not grant itself, an administrator grants with the commands that it names."},
	{check.CodeAddOnCredential, "agents of add-ons have credentials",
		"The certificate request of an agent is approved by the add-on's controller, or by a person: kubectl certificate approve."},
	{check.CodeAddOnWorks, "manifests of add-ons are applied",
		"The cluster refused an object, or the works could not be created. \"kubectl ocm work list\" shows the first manifest that fails, and why."},
	{check.CodeAddOnHealth, "add-ons are healthy on their clusters",
		"The agent renews a lease in its namespace every minute, or its workloads are probed. Check its pods on the cluster."},
	{check.CodeAddOnLeaves, "no add-on is stuck in deletion",
		"A hook runs on the cluster before an add-on is removed. If it cannot run, it is abandoned at a deadline: the annotation " +
			addonv1alpha1.AnnotationHookDeadline + "."},
	{check.CodeAddOnCluster, "clusters of add-ons exist",
		"An add-on lives in the namespace of its cluster; a hosted one also needs its hosting cluster."},
	{check.CodeAddOnTemplate, "templates of add-ons exist and render",
		"\"kubectl ocm addon create --render CLUSTER\" shows what a cluster would get, and what is wrong with it."},
	{check.CodeAddOnToken, "add-ons that use the token driver get tokens",
		"A hub with narrow rights for add-ons creates tokens only if an administrator allows it, because that right covers every account: " +
			"bind ClusterRole cluster-manager-token-driver."},
	{check.CodeAddOnRollout, "rollouts of add-ons progress",
		"More clusters have timed out than maxFailures allows. The rollout continues when they recover; " +
			"\"kubectl ocm addon resume\" continues it without them."},
}
