// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/accept"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/cluster"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/clusterset"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/join"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/unjoin"
)

// byForce ends the commands that continue without a cluster's agent.
const byForce = " --force{{if .keep}} --keep-works      when it does not come back{{else}}      when its agent no longer runs{{end}}"

// takeName joins under a name that another agent holds.
const takeName = "kubectl ocm join {{.cluster}}{{with .context}} --context {{.}}{{end}}{{with .hub}} --hub-context {{.}} --accept{{end}}" +
	"{{if .rejoin}} --rejoin{{end}} --replace"

// clusterWordings are the fixes for clusters: joining, accepting, cluster sets, leaving.
var clusterWordings = wordings{
	accept.AcceptIfSame:    "if it is that cluster: kubectl ocm accept {{.cluster}}{{.on}}",
	accept.ChooseRequester: "kubectl ocm accept --show{{.on}}      then choose one by --requester",
	accept.ReplaceAgent:    "kubectl ocm accept {{.cluster}} --replace{{.on}}      if it is the same cluster; if not, join that one under another name",

	cluster.ExampleSelector: "for example -l env=prod",
	cluster.NameSome:        "name clusters by -c, -l, --clusterset, --placement, or all of them by --all",

	clusterset.AddElsewhere:    "kubectl ocm clusterset add <another set> -c <cluster>{{.on}}",
	clusterset.DropAll:         "kubectl ocm clusterset drop {{.set}} --all{{.on}}",
	clusterset.DropBindings:    "add --unbind to delete these bindings too",
	clusterset.EditSet:         "choose another name, or change the existing one: kubectl edit managedclusterset {{.set}}{{.on}}",
	clusterset.ExampleSelector: "for example --selector env=prod",
	clusterset.LabelClusters:   "kubectl label managedcluster <cluster> <key>=<value>{{.on}}",
	clusterset.Move:            "add --move to take it out of there",

	join.AcceptThere:      "name the hub's context by --hub-context, or accept there: kubectl ocm accept {{.cluster}}",
	join.Adopt:            "add --adopt to take the cluster over: what works applied, and the agent's identity, stay",
	join.AskForToken:      "ask the hub's administrator for a new token, then unjoin and join again: kubectl ocm unjoin {{.cluster}}{{.on}}",
	join.AwaitCluster:     "wait until it is gone: kubectl get managedcluster {{.cluster}}{{.on}}",
	join.FinishUnjoin:     "finish that first: kubectl ocm unjoin {{.cluster}}{{.on}}",
	join.NameAddress:      "give --hub-apiserver https://...; kubectl ocm hub token prints it",
	join.NameHub:          "name its context by --hub-context, or give --hub-apiserver and --token-file (kubectl ocm hub token prints them)",
	join.NameHubContext:   "name the hub's context by --hub-context",
	join.NameProxyCA:      "give a PEM file by --proxy-ca-file",
	join.OtherHub:         "kubectl ocm hub init{{.on}}      or name the hub's context by --hub-context",
	join.OtherName:        "choose another name; if that agent was of this cluster and is gone: " + takeName,
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
}
