// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/manifest"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/member"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/naming"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/request"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/workload"
)

// joinCluster is the command that joins a cluster, with both contexts if they are known.
const joinCluster = `kubectl ocm join {{or .cluster "<name>"}} --context {{or .context "<its context>"}} --hub-context {{or .hub "<the hub's context>"}}`

// sharedWordings are the fixes used in many places.
var sharedWordings = wordings{
	fleet.AcceptAndWait:   "kubectl ocm accept {{.cluster}} --wait{{.on}}",
	fleet.AcceptCluster:   "kubectl ocm accept {{.cluster}}{{.on}}",
	fleet.AwaitNamespace:  "wait for: kubectl wait --for=delete namespace/{{.namespace}}{{.on}}",
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

	manifest.BuildKustomization: "kubectl kustomize {{.folder}}",
	manifest.GiveNamespace:      "give it metadata.namespace, or one for all by -n",
	manifest.NameFiles:          "name files or folders with manifests by -f",

	member.JoinWithNewToken: "run join again with a new token (kubectl ocm hub token); nothing needs to be undone",

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
}
