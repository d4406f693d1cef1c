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

// seen and fix return how the check sees a problem, and what mends it.
func (e entry) seen() string { return remedies[e.Code].seen }
func (e entry) fix() string  { return remedies[e.Code].fix }

// catalogue has all checks, ordered by code.
var catalogue = []entry{
	// This machine, the hub and its clusters.
	{check.CodeContext, "the entries of the kubeconfig can be used",
		"The contexts of --context and --hub-context need a cluster and a user that exist, files that can be read, a login that has not expired, " +
			"and a CA that verifies the server."},
	{check.CodeContextName, "names in kubeconfig files are used once",
		"KUBECONFIG may name several files. If two have different entries of one name, the first counts and nothing says so: " +
			"a command may go to another cluster, or as another user, than is meant."},
	{check.CodeProgramVersion, "this program suits the hub",
		"A program knows the options and objects of its own release. Use one of the hub's minor release, or move the hub: hub upgrade."},
	{check.CodeKubectlVersion, "kubectl suits the API server",
		"kubectl works with API servers of its own minor release of Kubernetes, and of the ones before and after it."},
	{check.CodeShadowed, "nothing on PATH hides a command",
		"kubectl runs a program kubectl-ocm-X in place of \"kubectl ocm X\". Remove or rename it, unless it is wanted."},
	{check.CodeCompletion, "kubectl completes the words of this plugin",
		"kubectl asks the program kubectl_complete-ocm on PATH, which \"kubectl ocm completion install\" links to the plugin. " +
			"Who needs no completion leaves this out: --skip " + check.CodeCompletion + "."},
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
	{check.CodeHubKubernetes, "the cluster is new enough to be a hub", "Before an installation. Upgrade the cluster, or choose another one."},
	{check.CodeHubTaken, "no other hub is in the way",
		"Before an installation. A hub of another distribution can be used as it is, or taken over with everything that it knows."},
	{check.CodeHubLeftovers, "nothing of an earlier hub is being deleted",
		"Before an installation. What is installed into a namespace or kind that is being deleted goes with it."},
	{check.CodeHubAuthority, "you have the rights on the hub",
		"Before an installation. Who installs a hub, or lets a cluster join, has the rights of an administrator there."},
	{check.CodeHubPublished, "what the hub publishes fits its certificate",
		"Clusters that join without a CA take the address and CA of kube-public/cluster-info. They refuse a hub whose certificate that CA did not issue."},
	{check.CodeHubTokens, "join tokens can be used, and expire",
		"A cluster that was given an expired token cannot ask to join. A token that never expires lets whoever finds it ask for ever."},
	{check.CodeHubApprovers, "users of automatic acceptance exist",
		"Only a request of exactly such a user is accepted automatically. A name that no request can come from, a pattern or a group has no effect; " +
			"system:anonymous is everyone."},
	{check.CodeHubLeads, "the hub leads to its clusters",
		"With the feature gate ClusterProxy, the hub serves an API behind its API server. " +
			"While that API is registered and does not answer, Kubernetes cannot delete namespaces of the hub."},
	{check.CodeHubStored, "objects are stored in versions that are served",
		"Hubs of old releases stored objects in versions that no longer exist. Kubernetes refuses a definition without a version of its " +
			"status.storedVersions: every object is written once, then the version is taken out of that list."},
	{check.CodeHubAdmits, "clusters may ask to join",
		"Whoever has a join token may create a ManagedCluster and a certificate request, and follow them. " +
			"If that ClusterRole or its bindings were changed, every join waits without end. \"kubectl ocm hub init\" restores them."},
	{check.CodeHubAddOnProxy, "the add-on cluster-proxy is beside, not in the way",
		"The add-on of that name may be installed beside the feature gate ClusterProxy: no name is shared, and each has its own clients. " +
			"Services that the add-on exposes are reached through the hub where the cluster lists them, too. " +
			"A ManagedProxyServiceResolver of an old release of the add-on has no effect."},
	{check.CodeHubCopies, "tokens may be copied beside ClusterProfiles",
		"With the feature gates ClusterProfile and ManagedServiceAccount, the add-on manager copies tokens to where programs look for them. " +
			"It reads and writes Secrets of all namespaces for that, a right that hub init grants. Whoever sets the gates in another way grants it, too."},
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
	{check.CodeClusterWorks, "works are applied and available",
		"\"kubectl ocm work list\" shows the first manifest that fails, and why. Known reasons have their own codes, from OCM0621."},
	{check.CodeClusterSet, "clusters are in sets that exist", "The label " + clusterv1.LabelClusterSet +
		" names a set that does not exist: no placement finds the cluster through it."},
	{check.CodeClusterVersion, "the hub works with the agents' versions",
		"An agent may be two minor releases older than its hub, and one newer. \"kubectl ocm join --upgrade\" moves an agent, hub upgrade the hub."},
	{check.CodeClusterTunnel, "clusters are reached through the hub",
		"With the feature gate ClusterProxy on both sides, the agent of a cluster holds a tunnel to the hub. Works do not need it."},
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
	{check.CodeSpokeKubernetes, "the cluster is new enough to be managed", "Before a cluster joins. Upgrade the cluster."},
	{check.CodeSpokeTaken, "no other agent is in the way",
		"Before a cluster joins. An agent of another hub is removed first, or gets company; one of another distribution can be taken over."},
	{check.CodeSpokeLeftovers, "nothing of an earlier agent is being deleted",
		"Before a cluster joins. What is installed into a namespace or kind that is being deleted goes with it."},
	{check.CodeSpokeAuthority, "you have the rights on the cluster",
		"Before a cluster joins. Who installs the agent gives it rights, and has the rights of an administrator on the cluster."},
	{check.CodeSpokeToken, "the agent's join token is valid",
		"An agent without a certificate asks for one with its join token. Once the token has expired or is revoked, it asks in vain: join again."},
	{check.CodeSpokeProxy, "the agent's proxy can work",
		"The proxy of its kubeconfig, or else HTTPS_PROXY and NO_PROXY of its Deployment, is used for the hub; the variables also apply to the " +
			"API server of its own cluster, which NO_PROXY has to except."},
	{check.CodeSpokeRights, "the agent has its rights",
		"The roles of the agent on its cluster, or their bindings, were changed. What it may not do fails later: works, claims, its own status. " +
			"\"kubectl ocm join --upgrade\" restores them."},
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
	{check.CodeManifests, "manifests can be sent",
		"Manifests are checked as the hub checks a work: they parse, have a kind and a name, appear once, and have the namespace that they need."},
	{check.CodeHubObjects, "the hub takes its own objects",
		"Placements, sets, works and other objects of the hub's kinds are shown to its API server and admission without being stored."},
	{check.CodeFileCluster, "works are sent to clusters that exist",
		"With -f. A ManifestWork is for the cluster whose name its namespace has. Without the cluster nobody applies it."},
	{check.CodeFileRules, "rules of works are about their objects",
		"With -f. A manifestConfig that names no object of the work has no effect: the API server does not compare them."},
	{check.CodeFilePlacement, "placements of replica sets exist",
		"With -f. A ManifestWorkReplicaSet names placements of its own namespace. One that does not exist selects no clusters."},
	{check.CodeCanaryAllowed, "you may send canaries",
		"--e2e creates one work on each available cluster and deletes it again; you need the right to create, get, list, watch and delete works."},
	{check.CodeCanaryArrives, "a canary reaches each cluster and is reported back",
		"--e2e sends a work with one ConfigMap: the agent has to apply it and to report its content within half a minute."},
	{check.CodeCanaryGoes, "canaries are removed again",
		"--e2e deletes what it sent, and what an earlier run has left behind. A work that stays waits for its agent."},
	{check.CodeWorkForbidden, "agents may write what works declare",
		"The agent has the rights of the role admin and some more. A ClusterRole on the cluster with the label " +
			operatorv1.LabelAggregateToWork + " adds rights."},
	{check.CodeWorkInvalid, "manifests of works are valid on their clusters",
		"The API server of the cluster refuses the object: a wrong field, or one that cannot be changed on an object that exists."},
	{check.CodeWorkKind, "clusters serve the kinds of works",
		"The definition of the kind is not installed on the cluster, or apiVersion and kind have a mistake. " +
			"A work may declare the definition beside its objects."},
	{check.CodeWorkNamespace, "clusters have the namespaces of works",
		"The agent creates no namespaces on its own. Declare the namespace in the work, or create it on the cluster."},
	{check.CodeWorkConflict, "no other field manager owns what works declare",
		"With the update strategy ServerSideApply and without force, fields that somebody else has set stay as they are."},
	{check.CodeWorkRival, "each object is declared by one work",
		"Two works of a cluster declare the same object differently. The older one takes precedence."},
	{check.CodeWorkPolicy, "policies of clusters let works pass",
		"An admission webhook, a quota or another policy of the cluster refuses the object. Correct the manifest, or the policy on the cluster."},
	{check.CodeWorkSize, "objects of works are not too large",
		"The API server of the cluster does not take an object, or annotations, of that size. Make it smaller, or split it."},
	{check.CodeWorkExecutor, "executors of works have the rights that they need",
		"The ServiceAccount that a work names as its executor must have every right that applying the objects takes."},
	{check.CodeWorkOrphans, "works that are on the cluster are on the hub",
		"A work vanished from the hub without its agent, for example when it was deleted by force, or the hub was restored. " +
			"The agent waits for its grace period, then it removes the objects."},
	{check.CodeSetPlacement, "placements of replica sets exist and select clusters",
		"A ManifestWorkReplicaSet sends its work to the clusters of placements in its namespace. If one is missing or selects none, nobody gets the work."},
	{check.CodeSetRollout, "replica sets are rolled out",
		"A rollout stops when more clusters are out of time than maxFailures allows, and continues when they recover. " +
			"The hub delivers sets only with the feature gate ManifestWorkReplicaSet."},
	{check.CodeSetWorks, "works of replica sets own their objects",
		"Another work or field manager has an object that the set declares, so its work is not applied there. Leave the object out of one of them."},
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
	{check.CodeAccountToken, "ManagedServiceAccounts have tokens that work",
		"The agent of the add-on managed-serviceaccount renews a token when most of its life is over. What it cannot do, it reports; " +
			"the token before stays until it ends."},
	{check.CodeAccountServed, "ManagedServiceAccounts are served by an agent",
		"The namespace must be that of a cluster with the add-on managed-serviceaccount, and the hub must be allowed to give its agent rights."},
	{check.CodePermissionSpec, "ClusterPermissions can be sent to their clusters",
		"Without a binding, outside the namespace of a cluster, or with a field that contradicts another, nothing is sent; what was sent before stays."},
	{check.CodePermissionRefused, "clusters take what ClusterPermissions give",
		"The agent applies roles and bindings with its own rights, and reports each. A refused one leaves the others as they are."},
	{check.CodePermissionRoles, "roles that ClusterPermissions bind exist",
		"With spec.validate, the agent looks whether the cluster has the roles that bindings refer to. A binding without its role gives nobody anything."},
}
