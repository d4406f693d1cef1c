// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/addon"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/placement"
)

// addonWordings are the fixes for add-ons, placements and cluster sets.
var addonWordings = wordings{
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
}
