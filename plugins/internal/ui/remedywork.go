// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/trace"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/work"
)

// workWordings are the fixes for works, and for tracing objects.
var workWordings = wordings{
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
}
