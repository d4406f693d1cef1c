// SPDX-License-Identifier: Apache-2.0

package ui

import (
	confighub "github.com/kubectl-ocm/kubectl-ocm/config/hub"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/check"
)

// checkWordings are the fixes of what a check finds.
var checkWordings = wordings{
	check.AcceptAnew: "kubectl ocm accept {{.cluster}} --replace{{.on}}      if it is this cluster, installed again; " +
		"otherwise join the other one under another name",
	check.AcceptOnHub:    `kubectl ocm accept {{or .cluster "<name>"}} --wait --context {{or .hub "<the hub's context>"}}`,
	check.AllowTokens:    confighub.AllowTokenDriver + "{{.on}}",
	check.ApproveRequest: "kubectl get csr {{.request}} -o yaml{{.on}}      and, if it is right, kubectl certificate approve {{.request}}{{.on}}",
	check.CheckAsAdmin:   "kubectl ocm check hub{{.on}}      as a user with the rights of cluster-admin",
	check.CheckCluster:   "kubectl ocm check cluster {{.cluster}}{{.on}}",
	check.CheckPlacement: "kubectl ocm check placement {{.placement}}{{.on}}",
	check.CheckSpoke:     `kubectl ocm check spoke --context {{or .context "<its context>"}}{{with .hub}} --hub-context {{.}}{{end}}`,
	check.CorrectHost:    "kubectl ocm cluster list{{.on}}      and correct the annotation {{.annotation}}",

	check.CreatePlacement:  "kubectl ocm placement create {{.name}} -n {{.namespace}}{{.on}}",
	check.CreateVersion:    "kubectl ocm addon create {{.addon}} -f FOLDER --version {{.version}}{{.on}}",
	check.DeleteInstance:   "kubectl delete managedclusteraddon {{.addon}} -n {{.cluster}}{{.on}}",
	check.DropCertificate:  "kubectl -n {{.namespace}} delete secret {{.secret}}{{.on}}      makes the agent request another",
	check.ExplainPlacement: "kubectl ocm placement explain {{.placement}}{{.on}}",
	check.FindController:   "kubectl get pods -A{{.on}}      shows whether the add-on's controller runs",
	check.GiveUpHook: "kubectl ocm work list -c {{.cluster}}{{.on}}      shows the work of the hook; " +
		"kubectl annotate managedclusteraddon {{.addon}} -n {{.cluster}} {{.annotation}}=1m{{.on}} gives it up",
	check.JoinByAddress:  "name another address where you join: kubectl ocm join <name> --hub-apiserver https://<reachable>:6443",
	check.LeaveToHub:     "kubectl annotate clustermanagementaddon {{.addon}} {{.annotation}} --overwrite{{.on}}      if the hub should install it",
	check.ListAllWorks:   "kubectl ocm work list --all{{.on}}",
	check.ListByStatus:   "kubectl ocm cluster list{{with .status}} --status {{.}}{{else}} -o wide{{end}}{{.on}}",
	check.ListRequests:   "kubectl get csr -l {{.label}}{{.on}}",
	check.ListScores:     "kubectl get addonplacementscores -A{{.on}}      shows which add-ons write scores",
	check.MoveAgent:      joinCluster + "      if the hub has moved",
	check.PublishAddress: "kubectl ocm hub init --apiserver-url https://<reachable>:6443{{.on}}",
	check.PutNameBack:    "kubectl patch klusterlet {{.klusterlet}} --type merge -p {{.patch}}{{.on}}",
	check.ReadController: "kubectl get pods -A{{.on}}      shows the add-on's controller; its log says more",
	check.RegisterAddOn:  "kubectl ocm addon create {{.addon}} -f FOLDER{{.on}}      or kubectl ocm addon delete {{.addon}}{{.on}}",
	check.RemoveGone:     "kubectl ocm cluster remove {{.cluster}}{{.on}} --force      if it is gone for good",
	check.ResumeRollout:  "kubectl ocm addon resume {{.addon}}{{.on}}      resumes it without them",
	check.ShowAgent:      "kubectl get pods,leases -n {{.namespace}} --context {{with .context}}{{.}}{{else}}<context of {{.cluster}}>{{end}}",
	check.ShowMissingRights: "kubectl ocm addon status {{.addon}} -c {{.cluster}}{{.on}}      names the commands to type, " +
		"as a user who has these rights",
	check.ShowSigner:  "kubectl get lease {{.lease}} -n {{.namespace}}{{.on}}      shows whether it renews again; start it on the hub's control plane",
	check.ShowTree:    "kubectl ocm work tree {{.work}} -c {{.cluster}}{{.on}}",
	check.ShowYAML:    "kubectl get {{.resource}} {{.name}} -o yaml{{.on}}",
	check.TryTemplate: "kubectl ocm addon create {{.addon}} -f FOLDER --render {{.cluster}}{{.on}}      tries a correction",
}
