// SPDX-License-Identifier: Apache-2.0

package ui

import (
	confighub "github.com/kubectl-ocm/kubectl-ocm/config/hub"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/accept"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/addon"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/adopt"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/backup"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/check"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/cluster"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/clusterset"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/credential"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/hub"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/join"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/manifest"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/member"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/naming"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/placement"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/proxy"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/request"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/token"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/trace"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/trust"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/unjoin"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/work"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/workload"
)

// joinCluster is the command that joins a cluster, with both contexts if they are known.
const joinCluster = `kubectl ocm join {{or .cluster "<name>"}} --context {{or .context "<its context>"}} --hub-context {{or .hub "<the hub's context>"}}`

// joinAdopt is the command that shows what taking a cluster over changes.
const joinAdopt = `kubectl ocm join <name> --adopt --plan --context {{or .context "<its context>"}} --hub-context {{or .hub "<the hub's context>"}}`

// byForce ends the commands that continue without a cluster's agent.
const byForce = " --force{{if .keep}} --keep-works      when it does not come back{{else}}      when its agent no longer runs{{end}}"

// takeName joins under a name that another agent holds.
const takeName = "kubectl ocm join {{.cluster}}{{with .context}} --context {{.}}{{end}}{{with .hub}} --hub-context {{.}} --accept{{end}}" +
	"{{if .rejoin}} --rejoin{{end}} --replace"

// there is the flag that names the context of a managed cluster.
const there = " --context {{with .context}}{{.}}{{else}}<context of {{.cluster}}>{{end}}"

// wordings maps the code of a remedy from the library to its text, a template over the
// remedy's values. "on" is the flag that names its cluster, "where" describes that
// cluster. Text after six spaces is a remark on the command before it.
var wordings = map[fleet.RemedyCode]string{
	// Fixes used in many places.
	fleet.AcceptAndWait:   "kubectl ocm accept {{.cluster}} --wait{{.on}}",
	fleet.AcceptCluster:   "kubectl ocm accept {{.cluster}}{{.on}}",
	fleet.AwaitNamespace:  "kubectl wait --for=delete namespace/{{.namespace}} --timeout=60s{{.on}}",
	fleet.AwaitNamespaces: "run the same command again when the namespace is gone: kubectl get namespaces{{.on}}",
	fleet.CheckHub:        "kubectl ocm check hub{{.on}}",
	fleet.ChooseHub:       "kubectl ocm hub init{{.on}}      or choose the hub's context by --context",
	fleet.CreateNamespace: "kubectl create namespace {{.namespace}}{{.on}}",
	fleet.HubStatus:       "kubectl ocm hub status{{.on}}",
	fleet.JoinCluster:     joinCluster,
	fleet.ListKinds:       "kubectl api-resources{{.on}}",
	fleet.LongerTimeout:   "run the same command again with a longer --timeout",
	fleet.MendWorks: "fix or delete the works that cannot be applied: kubectl ocm work list {{with .cluster}}-c {{.}}{{else}}-A{{end}}{{.on}}" +
		"      then run the same command again",
	fleet.NameCA:     "check the CA of {{.where}}, or name it by --certificate-authority",
	fleet.ShowAddOn:  "kubectl ocm addon status {{.addon}}{{with .cluster}} -c {{.}}{{end}}{{.on}}",
	fleet.ShowLogs:   "kubectl logs -n {{.namespace}} deploy/{{.name}}{{.on}}",
	fleet.ShowObject: "kubectl get {{.resource}}{{with .name}} {{.}}{{end}}{{with .namespace}} -n {{.}}{{end}}{{.on}}",
	fleet.ShowWorks:  "kubectl ocm work list{{with .work}} {{.}}{{end}} -c {{.cluster}}{{.on}}",

	credential.NameHub:    "name the hub: add --context or --kubeconfig to the arguments in the exec section",
	credential.ShareToken: "kubectl label managedserviceaccount {{.account}} -n {{.cluster}} {{.label}}=true{{.on}}",

	manifest.BuildKustomization: "kubectl kustomize {{.folder}}",
	manifest.GiveNamespace:      "give it metadata.namespace, or one for all by -n",
	manifest.NameFiles:          "name files or folders with manifests by -f",

	member.JoinWithNewToken: "run join again with a new token (kubectl ocm hub token); nothing needs to be undone",
	member.RenewManaged: "kubectl create secret generic external-managed-kubeconfig -n {{.namespace}} " +
		"--from-file=kubeconfig=<kubeconfig of the managed cluster> --dry-run=client -o yaml | kubectl apply -f -{{.on}}",

	naming.ListAccounts:   "kubectl get managedserviceaccounts -n {{.cluster}}{{.on}}",
	naming.ListAddOns:     "kubectl ocm addon list{{.on}}",
	naming.ListBindings:   "kubectl ocm clusterset list -o wide{{.on}}",
	naming.ListClusters:   "kubectl ocm cluster list{{.on}}",
	naming.ListPlacements: "kubectl ocm placement list -A{{.on}}",
	naming.ListSets:       "kubectl ocm clusterset list{{.on}}",
	naming.ListTokens:     "kubectl ocm hub token list{{.on}}",
	naming.ListWorkSets:   "kubectl ocm work list --sets{{.on}}",
	naming.ListWorks:      "kubectl ocm work list{{.on}}",

	request.DenyRequest:     "kubectl ocm accept {{.cluster}} --deny{{.on}}      or, if you know the sender: --requester {{.user}}",
	request.TokenForCluster: "kubectl ocm hub token create --cluster {{.cluster}}{{.on}}      and join with that one",

	workload.DescribeDeployment: "kubectl describe -n {{.namespace}} deploy/{{.name}}{{.on}}",
	workload.DescribePod:        "kubectl describe pod -n {{.namespace}} {{.name}}{{.on}}",
	workload.InstallHub:         "kubectl ocm hub init{{.on}}",
	workload.Restart:            "kubectl rollout restart -n {{.namespace}} deploy/{{.name}}{{.on}}",
	workload.ScaleUp:            "kubectl scale -n {{.namespace}} deploy/{{.name}} --replicas=1{{.on}}",

	// Fixes for hubs, their tokens, and how they are reached and trusted.
	hub.Adopt: "use it as it is (kubectl ocm hub status{{.on}}), or take it over; this shows what that changes: " +
		"kubectl ocm hub init --adopt --plan{{.on}}",
	hub.ChangeHosted: "on the cluster that runs it: kubectl edit clustermanager {{.name}}, or to remove the hub, kubectl delete clustermanager {{.name}}",
	hub.CleanFirst:   "keep it as it is, or remove it first: kubectl ocm hub clean{{.on}}",
	hub.ReachableHub: "clusters elsewhere need --apiserver-url https://<reachable>",
	hub.RemoveHosted: "remove each of them first: kubectl delete clustermanager {{.name}}{{.on}}",
	hub.UpgradeAgent: "kubectl ocm join {{.cluster}} --upgrade --context {{with .context}}{{.}}{{else}}<its context>{{end}}",
	hub.UpgradeFirst: "upgrade the hub first: kubectl ocm hub upgrade{{.on}}",
	hub.UnjoinFirst:  "kubectl ocm unjoin {{.cluster}} --context <its context> --hub-context {{.hub}}      or add --force",

	adopt.Install: "kubectl ocm hub init{{.on}}",
	adopt.Compact: "kubectl ocm hub init --layout compact{{.on}}      then run the same command again",
	adopt.RemoveCSV: "delete its Subscription, which kubectl get subscriptions.operators.coreos.com -n {{.namespace}}{{.on}} shows, " +
		"then kubectl delete clusterserviceversion {{.csv}} -n {{.namespace}}{{.on}}      both leave the hub as it is",

	backup.CleanOrMerge: "name a hub that has just been made; or add --merge: it creates what is missing, and keeps what is there as it is",
	backup.FinishFirst:  "finish it with its own file; or remove the hub (kubectl ocm hub clean{{.on}}), and make it again",
	backup.InitFirst:    "kubectl ocm hub init{{.on}}      then run the same command again",
	backup.JoinOrRelease: "{{if .cluster}}the hub has another address or CA, so join each of them again: kubectl ocm join {{.cluster}} --context <its context> " +
		"--hub-context <the hub's context> --accept{{else}}kubectl ocm cluster list{{.on}}      shows why{{end}}; " +
		"then run the same command again, or go on without them: --release",
	backup.OpenGates:  "kubectl ocm hub init --feature-gates {{.gates}}{{.on}}      then run the same command again",
	backup.UpgradeHub: "kubectl ocm hub upgrade --version {{.version}}{{.on}}      then run the same command again",

	token.AccountToken:    "kubectl ocm hub token{{.on}}      (a token of the bootstrap service account)",
	token.BootstrapToken:  "kubectl ocm hub token create --cluster {{.cluster}} --use-bootstrap-token{{.on}}",
	token.BootstrapTokens: "kubectl ocm hub token create --cluster NAME --use-bootstrap-token{{.on}}      (one token for each cluster)",
	token.ExampleTTL:      "for example --ttl 1h",
	token.ExampleUses:     "for example --uses 1; without --uses it is for any number",
	token.NewToken:        "kubectl ocm hub token --context <the hub's context>      then give the new token to join",
	token.OneCluster:      "leave out --use-bootstrap-token, or bind the token to one cluster by --cluster NAME",

	trust.CheckAddress: "check --hub-apiserver, network and proxy",
	trust.CheckCA:      "check --ca-file and --hub-apiserver; nothing was sent to the hub",
	trust.CompareCA:    "compare it, or use --hub-ca-hash",
	trust.ExampleProxy: "for example --proxy-url http://proxy.example.org:3128",
	trust.NameHubCA: "name the hub's CA by --ca-file FILE; on the hub: kubectl config view --raw --minify " +
		"-o jsonpath='{.clusters[0].cluster.certificate-authority-data}' | base64 -d",
	trust.RightHub: "make sure that you reach the right hub, and take the hash from: kubectl ocm hub token -o jsonpath={.ca-hash}",
	trust.TakeHash: "take it from: kubectl ocm hub token -o jsonpath={.ca-hash}",

	// Fixes for clusters: joining, accepting, cluster sets, leaving.
	accept.AcceptIfSame:    "if it is that cluster: kubectl ocm accept {{.cluster}}{{.on}}",
	accept.ChooseRequester: "kubectl ocm accept --show{{.on}}      then choose one by --requester",
	accept.ReplaceAgent:    "kubectl ocm accept {{.cluster}} --replace{{.on}}      if it is the same cluster; if not, join that one under another name",

	cluster.AddToSet:        `kubectl ocm clusterset add {{or .set "<set>"}} -c <cluster>{{.on}}`,
	cluster.DropFromSet:     "kubectl ocm clusterset drop <set> -c <cluster>{{.on}}",
	cluster.ExampleSelector: "for example -l env=prod",
	cluster.Overwrite:       "add --overwrite to replace it",
	cluster.NameSome:        "name clusters by -c, -l, --clusterset, --placement, or all of them by --all",

	clusterset.AddElsewhere:    "kubectl ocm clusterset add <another set> -c <cluster>{{.on}}",
	clusterset.DropAll:         "kubectl ocm clusterset drop {{.set}} --all{{.on}}",
	clusterset.DropBindings:    "add --unbind to delete these bindings too",
	clusterset.EditSet:         "choose another name, or change the existing one: kubectl edit managedclusterset {{.set}}{{.on}}",
	clusterset.ExampleSelector: "for example --selector env=prod",
	clusterset.LabelClusters:   "kubectl label managedcluster <cluster> <key>=<value>{{.on}}",
	clusterset.Move:            "add --move to take it out of there",

	join.AcceptThere: "name the hub's context by --hub-context, or accept there: kubectl ocm accept {{.cluster}}",
	join.Adopt:       "add --adopt to take the cluster over: what works applied, and the agent's identity, stay",
	join.AdoptAgent: "take it over; this shows what that changes: " +
		"kubectl ocm join {{.cluster}} --adopt --plan{{.on}} --hub-context <the hub's context>",
	join.AskForToken:      "ask the hub's administrator for a new token, then unjoin and join again: kubectl ocm unjoin {{.cluster}}{{.on}}",
	join.AwaitCluster:     "wait until it is gone: kubectl get managedcluster {{.cluster}}{{.on}}",
	join.FinishUnjoin:     "finish that first: kubectl ocm unjoin {{.cluster}}{{.on}}",
	join.NameAddress:      "give --hub-apiserver https://...; kubectl ocm hub token prints it",
	join.NameHub:          "name its context by --hub-context, or give --hub-apiserver and --token-file (kubectl ocm hub token prints them)",
	join.NameHubContext:   "name the hub's context by --hub-context",
	join.NameProxyCA:      "give a PEM file by --proxy-ca-file",
	join.OtherHub:         "kubectl ocm hub init{{.on}}      or name the hub's context by --hub-context",
	join.OtherName:        "choose another name; if that agent was of this cluster and is gone: " + takeName,
	join.ManageOther:      "give the kubeconfig of the cluster to manage by --managed-cluster-kubeconfig, or leave --mode out to join this one",
	join.NameManaged:      "give the kubeconfig of the cluster that joins by --managed-cluster-kubeconfig",
	join.OtherKlusterlet:  "kubectl ocm unjoin {{.cluster}} --klusterlet {{.klusterlet}}{{.on}}      or join with another --klusterlet",
	join.PublishAgain:     "leave --internal-endpoint out, or run kubectl ocm hub init again on the hub",
	join.ReachableHub:     "use --internal-endpoint or --hub-apiserver",
	join.TakeName:         takeName + "      if that agent was of this cluster and is gone; if not, choose another name",
	join.UnjoinFirst:      "kubectl ocm unjoin {{.cluster}}{{.on}}      or add --rejoin to take it away from there",
	join.UnjoinKlusterlet: "kubectl ocm unjoin {{.cluster}} --klusterlet {{.klusterlet}}{{.on}}      or join with --klusterlet {{.klusterlet}}",
	join.UnjoinOrAdd: "kubectl ocm unjoin {{.cluster}}{{.on}}      or add --rejoin to take it away from there, " +
		"or --klusterlet NAME to have an agent for each hub",

	unjoin.DetachByForce:  "kubectl ocm unjoin {{.cluster}} --hub-only{{with .hub}} --hub-context {{.}}{{end}}" + byForce,
	unjoin.NameCluster:    "kubectl ocm unjoin NAME --context <its context>",
	unjoin.NameHub:        "name its context by --context",
	unjoin.NameKlusterlet: "kubectl ocm unjoin {{.cluster}} --klusterlet {{.klusterlet}}{{.on}}{{with .hub}} --hub-context {{.}}{{end}}",
	unjoin.NameSpoke:      "name it by --context, or add --force when the cluster no longer exists",
	unjoin.OtherHub:       "name the hub's context by --hub-context",
	unjoin.OtherHubOrNone: "name the hub's context by --hub-context; when the hub is gone: kubectl ocm unjoin {{.cluster}}{{.on}}",
	unjoin.RemoveByForce:  "kubectl ocm cluster remove {{.cluster}}{{.on}}" + byForce,
	unjoin.RemoveWorks:    "add --hub-context <hub> to remove them too, or --keep-works to leave their objects where they are",
	unjoin.TakeFinalizers: "resolve what holds it, or remove the finalizers with kubectl edit; then run the same command again",
	unjoin.Unjoin:         "kubectl ocm unjoin {{.cluster}}{{.on}}{{with .hub}} --hub-context {{.}}{{end}}",
	unjoin.UnjoinByForce:  "kubectl ocm unjoin {{.cluster}}{{.on}}{{with .hub}} --hub-context {{.}}{{end}}" + byForce,

	// Fixes for add-ons, placements and cluster sets.
	addon.AddPlacement:            "kubectl ocm addon enable {{.addon}} --placement NAMESPACE/NAME{{.on}}      adds a placement that selects the cluster",
	addon.ChangeDefault:           "add --overwrite to change them, as its rollout strategy says",
	addon.CheckPlacementOrConfirm: "kubectl ocm check placement {{.placement}}{{.on}}      or add --yes, and let the hub follow the decision when it comes",
	addon.CorrectNamespace:        "correct -n",
	addon.DropConfig:              "kubectl edit managedclusteraddon {{.addon}} -n {{.cluster}}{{.on}}      and take it out of spec.configs",
	addon.ExampleVersion:          "for example --version 0.1.0",
	addon.NameClusters:            "leave --placement out, and name clusters",
	addon.NameConfig:              "name a file with an object by --config",
	addon.OtherVersion:            "choose another --version, or add --overwrite",
	addon.ShowHook:                "kubectl ocm work list -c {{.cluster}}{{.on}}      shows the work of the hook",
	addon.TakeOver:                "choose another name, or add --overwrite to leave it to the hub",

	placement.AddToSet: `kubectl ocm clusterset add {{.set}} -c {{or .cluster "<cluster>"}}{{.on}}`,
	placement.BindOneOf: `kubectl ocm clusterset bind {{or .set "<set>"}} -n {{.namespace}}{{.on}}` +
		` (there are {{if .sets}}{{raw .sets}}{{else}}none{{end}})`,
	placement.BindSet:        `kubectl ocm clusterset bind {{or .set "<set>"}} -n {{.namespace}}{{.on}}`,
	placement.CorrectField:   "correct the field: kubectl explain {{.kind}}",
	placement.CreateSet:      "kubectl ocm clusterset create {{.set}}{{.on}}",
	placement.ExampleCluster: "give a ManagedCluster, for example by kubectl get managedcluster <name> -o yaml",
	placement.FitSelector: "kubectl get managedclusterset {{.set}} -o yaml{{.on}}      and change labels of a cluster " +
		"so that spec.clusterSelector selects it",
	placement.LabelCluster: `kubectl label managedcluster {{or .cluster "<cluster>"}} --overwrite {{words .labels}}{{.on}}`,
	placement.ReplaceSpec:  "add --overwrite, after looking at the difference by --diff; or choose another name",

	// Fixes for works, and for tracing objects.
	trace.ListHubWorks: "kubectl ocm work list --context <hub>",
	trace.NameCluster:  "name it by -c to see more",
	trace.NameHub:      "name its context by --hub-context to see more",

	work.AddPlacement: "use another name, or add the placement to spec.placementRefs: kubectl edit manifestworkreplicasets {{.name}} -n {{.namespace}}{{.on}}",
	work.ApplyOrphaning: "kubectl ocm work apply {{.work}} -f FILE --placement {{.placement}} --delete-option orphan --wait{{.on}}" +
		"      then run this again",
	work.CreateExecutor: "kubectl create serviceaccount {{.name}} -n {{.namespace}}{{.on}}      or leave out --spoke-context",
	work.DeleteByForce:  "kubectl ocm work delete {{.work}} -c {{.cluster}} --force{{.on}}      leaves its objects on the cluster",
	work.DeleteOlder:    "kubectl ocm work delete {{.work}} -c {{.clusters}} --orphan{{.on}}      objects stay; then run this again",
	work.DeleteOwner:    "delete the owner, or add --force",
	work.DeleteSetOf:    "kubectl ocm work delete {{.work}} --placement {{.placement}}{{.on}}",
	work.DeleteWork:     "kubectl ocm work delete {{.work}} -c {{.cluster}}{{.on}}",
	work.GrantRights: "kubectl create {{.kind}} {{.role}} --verb={{.verbs}} --resource={{.resource}}{{with .namespace}} -n {{.}}{{end}}{{.on}}" +
		" && kubectl create {{.kind}}binding {{.role}} --{{.kind}}={{.role}} --serviceaccount={{.account}}{{with .namespace}} -n {{.}}{{end}}{{.on}}" +
		"      or leave out --spoke-context to send the work anyway",
	work.ListOfPlacement:      "kubectl ocm work list --placement {{.placement}}{{.on}}",
	work.NameOne:              "name the one by -c",
	work.NameOwn:              "name its own placement, or the clusters of single works by -c",
	work.OpenGate:             "kubectl ocm hub init --feature-gates {{.gate}}=true{{.on}}",
	work.PlacementAlone:       "choose the clusters by --placement NAMESPACE/NAME alone",
	work.RollOutProgressively: "add --rollout progressive",
	work.TakeOver:             "use another name, or add --force",
	work.TakePlacement:        "take {{.placement}} out of spec.placementRefs: kubectl edit manifestworkreplicasets {{.name}} -n {{.namespace}}{{.on}}",
	work.WaitLonger:           "wait longer: --timeout",
	work.WithoutForce:         "leave out --force",

	proxy.CheckReach: "kubectl ocm check cluster {{.cluster}}{{.on}}",
	proxy.GrantReach: "kubectl create clusterrolebinding reach-clusters --clusterrole=open-cluster-management:managedclusters:proxy " +
		"--user=<you>{{.on}}      as an administrator of the hub; a role with resourceNames: [{{.cluster}}] leads to that one only",
	proxy.GrantAccount: "kubectl create rolebinding act-as-accounts -n {{.cluster}} --clusterrole=open-cluster-management:managedserviceaccounts:proxy " +
		"--user=<you>{{.on}}      as an administrator of the hub; a Role with resourceNames: [{{.account}}] is for that account only",
	proxy.LetAgentAct: "let the agent act as it, on the cluster: kubectl create role act-as-{{.account}} -n {{.namespace}} --verb=impersonate " +
		"--resource=serviceaccounts --resource-name={{.account}} --context <its context>      and bind the role to the agent's account",
	proxy.UpgradeAgent: "kubectl ocm join {{.cluster}} --upgrade --context <its context>{{with .hub}} --hub-context {{.}}{{end}}",
	proxy.OpenAgent: `kubectl ocm join {{.cluster}} --feature-gates ClusterProxy=true --context {{or .context "<its context>"}}` +
		"{{with .hub}} --hub-context {{.}}{{end}}      if its agent has the gate off",
	proxy.GrantServices: "kubectl create clusterrolebinding reach-services --clusterrole=open-cluster-management:clusterservices:proxy " +
		"--user=<you>{{.on}}      as an administrator of the hub; a role with resourceNames: [{{.cluster}}] is for that cluster only",
	proxy.GrantList: "kubectl create role reads-exposed-services -n {{.namespace}} --verb=get --resource=configmaps " +
		"--resource-name=cluster-proxy-exposed-services --context <its context> && kubectl create rolebinding reads-exposed-services " +
		"-n {{.namespace}} --role=reads-exposed-services --user=<you> --context <its context>      as an administrator of the cluster",
	proxy.ExposeService: "kubectl create configmap cluster-proxy-exposed-services -n {{.namespace}} --from-literal={{.key}}={{.entry}} " +
		"--dry-run=client -o yaml --context <its context> | kubectl apply --server-side --field-manager={{.key}} -f - --context <its context>" +
		"      as an administrator of the cluster",
	proxy.EditList:     "kubectl edit configmap cluster-proxy-exposed-services -n {{.namespace}} --context <its context>",
	proxy.AdoptSet:     "kubectl ocm proxy adopt --clusterset {{.set}}{{.on}}",
	proxy.ListServices: "kubectl ocm proxy service -c {{.cluster}}{{.on}}",
	proxy.ShowServices: "kubectl ocm proxy kubectl -c {{.cluster}}{{.on}} -- get services -n {{.namespace}}",
	proxy.ShowEndpoints: "kubectl ocm proxy kubectl -c {{.cluster}}{{.on}} -- get endpointslices -n {{.namespace}} " +
		"-l kubernetes.io/service-name={{.name}}",
	proxy.SpeakHTTP:   "kubectl ocm proxy service {{.service}} -c {{.cluster}}{{.on}}      if it speaks http",
	proxy.ForwardPort: "kubectl ocm proxy port-forward -c {{.cluster}} svc/{{.name}} 0:{{.port}} -n {{.namespace}}{{.on}}",
	proxy.OpenHub:     "kubectl ocm hub init --feature-gates ClusterProxy=true{{.on}}",

	// Fixes of what a check finds.
	check.AcceptAnew: "kubectl ocm accept {{.cluster}} --replace{{.on}}      if it is this cluster, installed again; " +
		"otherwise join the other one under another name",
	check.AcceptOnHub: `kubectl ocm accept {{or .cluster "<name>"}} --wait --context {{or .hub "<the hub's context>"}}`,
	check.CarryServices: "kubectl ocm proxy adopt{{.on}} | kubectl ocm work apply cluster-proxy-exposed-services -f - -c <clusters>{{.on}}" +
		"      exposes on clusters what the add-on exposes",
	check.AllowAccount: "kubectl annotate serviceaccount {{.account}} -n {{.namespace}} {{.annotation}}=true" + there +
		"      lets the hub have its tokens; or choose another name",
	check.AllowCopies:      confighub.AllowCredentials + "{{.on}}",
	check.AllowTokens:      confighub.AllowTokenDriver + "{{.on}}",
	check.ApproveRequest:   "kubectl get csr {{.request}} -o yaml{{.on}}      and, if it is right, kubectl certificate approve {{.request}}{{.on}}",
	check.AwaitDefinition:  "kubectl wait --for=delete crd/{{.definition}} --timeout=60s{{.on}}",
	check.AwaitPlace:       "kubectl wait --for=delete namespace/{{.namespace}} --timeout=60s" + there + "      the agent creates the objects when it is back",
	check.CheckAsAdmin:     "kubectl ocm check hub{{.on}}      as a user with the rights of cluster-admin",
	check.CheckCluster:     "kubectl ocm check cluster {{.cluster}}{{.on}}",
	check.CheckHubClusters: "kubectl ocm check{{.on}}      says why",
	check.CheckPlacement:   "kubectl ocm check placement {{.placement}}{{.on}}",
	check.CheckSpoke:       `kubectl ocm check spoke --context {{or .context "<its context>"}}{{with .hub}} --hub-context {{.}}{{end}}`,
	check.CheckWork:        "kubectl ocm check work {{.work}}{{.on}}      says what ends it; the set restores its works",
	check.CleanHub:         "kubectl ocm hub clean{{.on}}      removes it, unless you want to keep it",
	check.CorrectHost:      "kubectl ocm cluster list{{.on}}      and correct the annotation {{.annotation}}",

	check.CreatePlacement: "kubectl ocm placement create {{.name}} -n {{.namespace}}{{.on}}",
	check.CreatePlace:     "kubectl create namespace {{.namespace}}" + there + "      or declare it in the work",
	check.CreateVersion:   "kubectl ocm addon create {{.addon}} -f FOLDER --version {{.version}}{{.on}}",
	check.DeleteCanary:    "kubectl ocm work delete {{.work}} -c {{.cluster}} --force{{.on}}      if its agent no longer runs",
	check.DeleteInstance:  "kubectl delete managedclusteraddon {{.addon}} -n {{.cluster}}{{.on}}",
	check.DropBinding: "kubectl delete {{.kind}} {{.name}}{{with .namespace}} -n {{.}}{{end}}" + there +
		"      the agent creates it again, with the other role",
	check.DropCertificate: "kubectl -n {{.namespace}} delete secret {{.secret}}{{.on}}      makes the agent request another",
	check.DropRecord: "kubectl delete appliedmanifestwork {{.record}}{{.on}}      removes its objects now; or create the work again, " +
		"and it keeps them",
	check.DropApprover: "kubectl patch clustermanager {{.name}} --type json -p {{.patch}}{{.on}}",
	check.DropSecret:   "kubectl delete secret {{.secret}} -n {{.namespace}}{{.on}}      if nobody needs it; or choose another name",
	check.DropResolver: "kubectl delete managedproxyserviceresolver {{.name}}{{.on}}" +
		"{{with .set}}      before that, kubectl ocm proxy adopt --clusterset {{.}}{{$.on}} prints what exposes its Service through this hub{{end}}",
	check.DropService:      "kubectl delete apiservice {{.name}}{{.on}}",
	check.DropToken:        "kubectl delete secret {{.secret}} -n {{.namespace}}{{.on}}      kubectl ocm hub token makes one that expires",
	check.EditObject:       "kubectl edit {{.resource}} {{.name}} -n {{.namespace}}{{.on}}      and correct what is named",
	check.EnableAddOn:      "kubectl ocm addon enable {{.addon}} -c {{.cluster}}{{.on}}",
	check.ExplainPlacement: "kubectl ocm placement explain {{.placement}}{{.on}}",
	check.FindController:   "kubectl get pods -A{{.on}}      shows whether the add-on's controller runs",
	check.GiveUpHook: "kubectl ocm work list -c {{.cluster}}{{.on}}      shows the work of the hook; " +
		"kubectl annotate managedclusteraddon {{.addon}} -n {{.cluster}} {{.annotation}}=1m{{.on}} gives it up",
	check.GrantAgent: "kubectl create clusterrole {{.role}} --verb=get,list,watch,create,update,patch,delete --resource={{.resource}}" + there +
		" && kubectl label clusterrole {{.role}} {{.label}}=true" + there,
	check.GrantExecutor: "kubectl create {{.kind}} {{.role}} --verb={{.verbs}} --resource={{.resource}}{{with .namespace}} -n {{.}}{{end}}" + there +
		" && kubectl create {{.kind}}binding {{.role}} --{{.kind}}={{.role}} --serviceaccount={{.account}}{{with .namespace}} -n {{.}}{{end}}" + there,
	check.GrantCanaries: "kubectl create clusterrole kubectl-ocm-canary --verb=create,get,list,watch,delete " +
		"--resource=manifestworks.work.open-cluster-management.io && kubectl create clusterrolebinding kubectl-ocm-canary " +
		`--clusterrole=kubectl-ocm-canary --user={{or .user "<you>"}}      as an administrator of {{raw .where}}`,
	check.GrantAdmin: "kubectl create clusterrolebinding kubectl-ocm-installer --clusterrole=cluster-admin " +
		`--user={{or .user "<you>"}}      as an administrator of {{raw .where}}`,
	check.JoinByAddress: "name another address where you join: kubectl ocm join <name> --hub-apiserver https://<reachable>:6443",
	check.JoinByProxy:   joinCluster + " --proxy-url http://<proxy>:3128",
	check.LeaveToHub:    "kubectl annotate clustermanagementaddon {{.addon}} {{.annotation}} --overwrite{{.on}}      if the hub should install it",
	check.ListAllWorks:  "kubectl ocm work list --all{{.on}}",
	check.ListByStatus:  "kubectl ocm cluster list{{with .status}} --status {{.}}{{else}} -o wide{{end}}{{.on}}",
	check.ListRequests:  "kubectl get csr -l {{.label}}{{.on}}",
	check.ListScores:    "kubectl get addonplacementscores -A{{.on}}      shows which add-ons write scores",
	check.ListServed:    "kubectl api-resources --api-group={{.group}}" + there + "      shows what there is; install the definition, or send it too",
	check.MoveAgent:     joinCluster + "      if the hub has moved",
	check.NameApprover:  "kubectl ocm hub init --auto-accept <user>{{.on}}",
	check.SetValidity: "kubectl patch managedserviceaccount {{.name}} -n {{.namespace}} --type merge " +
		`-p '{"spec":{"rotation":{"validity":"720h"}}}'{{.on}}`,
	check.SetProxy:       "kubectl -n {{.namespace}} set env deploy/{{.name}} {{.value}}{{.on}}",
	check.PublishAnew:    "kubectl delete configmap cluster-info -n kube-public{{.on}}      and then kubectl ocm hub init{{.on}}",
	check.PublishAddress: "kubectl ocm hub init --apiserver-url https://<reachable>:6443{{.on}}",
	check.PutNameBack:    "kubectl patch klusterlet {{.klusterlet}} --type merge -p {{.patch}}{{.on}}",
	check.RenewBootstrap: "kubectl ocm hub token --print bundle | base64 -d > bootstrap; kubectl create secret generic bootstrap-hub-kubeconfig " +
		"-n {{.namespace}} --from-file=kubeconfig=bootstrap --dry-run=client -o yaml | kubectl apply -f -{{.on}}",
	check.ReadController: "kubectl get pods -A{{.on}}      shows the add-on's controller; its log says more",
	check.RegisterAddOn:  "kubectl ocm addon create {{.addon}} -f FOLDER{{.on}}      or kubectl ocm addon delete {{.addon}}{{.on}}",
	check.RevokeToken:    "kubectl ocm hub token revoke {{.token}}{{.on}}",
	check.RemoveGone:     "kubectl ocm cluster remove {{.cluster}}{{.on}} --force      if it is gone for good",
	check.RestoreRights:  "kubectl ocm join --upgrade{{with .klusterlet}} --klusterlet {{.}}{{end}}{{.on}}",
	check.ResumeRollout:  "kubectl ocm addon resume {{.addon}}{{.on}}      resumes it without them",
	check.ShowAgent:      "kubectl get pods,leases -n {{.namespace}}" + there,
	check.ShowMissingRights: "kubectl ocm addon status {{.addon}} -c {{.cluster}}{{.on}}      names the commands to type, " +
		"as a user who has these rights",
	check.ShowRivals: "kubectl ocm work tree {{.older}} {{.work}} -c {{.cluster}}{{.on}}      shows both: declare the object in one of them, " +
		"or identically",
	check.ShowSigner: "kubectl get lease {{.lease}} -n {{.namespace}}{{.on}}      shows whether it renews again; start it on the hub's control plane",
	check.ShowTree:   "kubectl ocm work tree {{.work}} -c {{.cluster}}{{.on}}",
	check.ShowYAML:   "kubectl get {{.resource}} {{.name}} -o yaml{{.on}}",
	check.StoreAgain: "{{with .change}}kubectl patch crd {{$.definition}} --type json -p {{.}}{{$.on}} && {{end}}" +
		"{{with .rewrite}}kubectl get {{.}} -A -o json{{$.on}} | kubectl replace -f -{{$.on}} && {{end}}" +
		"kubectl patch crd {{.definition}} --subresource status --type merge -p {{.status}}{{.on}}",
	check.TakeFields:     "kubectl patch manifestwork {{.work}} -n {{.cluster}} --type json -p {{.patch}}{{.on}}      if the work is to own these fields",
	check.TakeOverAgent:  joinAdopt + "      shows what taking it over changes",
	check.TakeOverHub:    "kubectl ocm hub init --adopt --plan{{.on}}      shows what taking it over changes",
	check.TokenFor:       "kubectl ocm hub token --cluster {{.cluster}}{{.on}}",
	check.TryTemplate:    "kubectl ocm addon create {{.addon}} -f FOLDER --render {{.cluster}}{{.on}}      tries a correction",
	check.UpgradeHub:     "kubectl ocm hub upgrade --version {{.version}}{{.on}}",
	check.UpgradeProgram: "kubectl krew upgrade ocm      or install the release {{.version}}",
}
