// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/config/crd"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/hub"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/trust"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/workload"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// hub checks the hub itself.
func (c *checking) hub(ctx context.Context) []Area {
	name := "hub (" + c.o.Hub.Where() + ")"
	h := &hubCheck{checking: c}
	var err error
	if h.runner, err = hub.Deployment(ctx, c.o.Hub); err != nil {
		return []Area{{name, append(c.runAll(ctx, []check{c.reach(CodeHubReached, c.o.Hub)}), unreadable(CodeHubRuns, err))}}
	}
	if h.hosted, err = hub.HostedBy(ctx, c.o.Hub); err != nil {
		return []Area{{name, append(c.runAll(ctx, []check{c.reach(CodeHubReached, c.o.Hub)}), unreadable(CodeHubInstalled, err))}}
	}
	h.others = hub.OthersHub(h.runner)
	found := c.runAll(ctx, []check{
		c.reach(CodeHubReached, c.o.Hub),
		{CodeHubInstalled, c.installed},
		{CodeHubRuns, h.runs},
		{CodeProgramVersion, h.program},
		{CodeHubForeign, h.foreign},
		{CodeHubAddress, h.address},
		{CodeHubKinds, h.kinds},
		{CodeHubAdmission, h.admission},
		{CodeHubSigner, c.signer},
		{CodeHubPublished, h.published},
		{CodeHubTokens, h.tokens},
		{CodeHubAdmits, h.admitsClusters},
		{CodeHubApprovers, h.approvers},
		{CodeHubLeads, c.leads},
		{CodeHubAddOnProxy, c.addOnProxy},
		{CodeHubCopies, h.copiesTokens},
	})
	return []Area{{name, withoutEchoes(found, CodeHubInstalled, CodeHubRuns)}}
}

// hubCheck checks one hub.
type hubCheck struct {
	*checking
	// runner runs the hub, nil where nothing does; others is true when it is the operator of
	// another distribution.
	runner *appsv1.Deployment
	others bool
	// hosted is the ClusterManager of another cluster that runs the hub; empty if it runs here.
	hosted string
}

// fix restores what belongs to the hub.
func (h *hubCheck) fix() fleet.Fix {
	if h.hosted != "" {
		return hub.ChangeHosted.With("name", h.hosted)
	}
	return workload.Repair(h.o.Hub, h.others)
}

// program reports a program of another minor release than the hub's.
func (h *hubCheck) program(context.Context) ([]Finding, error) {
	if h.runner == nil || h.others {
		return nil, nil
	}
	own, of := h.o.Version, hub.TagOf(hub.ImageOf(h.runner))
	if hub.Suits(own, of) {
		return nil, nil
	}
	f := warning(CodeProgramVersion, "this program is "+own+", and the hub "+of, "a program and its hub are of the same minor release",
		UpgradeProgram.With("version", of))
	if hub.IsOlder(of, own) {
		f.Fix = UpgradeHub.On(h.o.Hub, "version", own)
	}
	return []Finding{f}, nil
}

func (c *checking) installed(ctx context.Context) ([]Finding, error) {
	cm, err := typed.Get[operatorv1.ClusterManager](ctx, c.o.Hub.Client, fleet.ClusterManagers, "", operatorv1.DefaultClusterManagerName)
	switch {
	case apierrors.IsNotFound(err):
		return nil, fleet.NotHub(c.o.Hub, "there is no clustermanager/"+operatorv1.DefaultClusterManagerName)
	case err != nil:
		return nil, fleet.Explain("reading clustermanager/"+operatorv1.DefaultClusterManagerName, c.o.Hub, err)
	}
	out := c.asDeclared("the hub is", cm)
	hosts, err := hub.Hosts(ctx, c.o.Hub)
	if err != nil {
		return nil, err
	}
	for i := range hosts {
		out = append(out, c.asDeclared("the hosted hub "+hosts[i].Name+" is", &hosts[i])...)
	}
	if out == nil {
		out = good(CodeHubInstalled, "clustermanager/%s applied", cm.Name)
	}
	return out, nil
}

// asDeclared reports the conditions of a ClusterManager that are not as they should be.
func (c *checking) asDeclared(what string, cm *operatorv1.ClusterManager) []Finding {
	var out []Finding
	for _, problem := range hub.Problems(cm) {
		fix := ShowYAML.On(c.o.Hub, "resource", "clustermanager", "name", cm.Name)
		out = append(out, failure(CodeHubInstalled, what+" not as declared", problem, fix))
	}
	return out
}

// hostedRuns reports whether the process of a hosted hub works, as far as the hub knows.
func (h *hubCheck) hostedRuns(ctx context.Context) ([]Finding, error) {
	why, err := hub.Idle(ctx, h.o.Hub, h.run.Now())
	if err != nil || why == "" {
		return good(CodeHubRuns, "%s, as clustermanager/%s there says", hub.HostedText, h.hosted), err
	}
	return []Finding{failure(CodeHubRuns, "the hub's loops do not run: "+hub.HostedText, why, h.fix())}, nil
}

func (h *hubCheck) runs(ctx context.Context) ([]Finding, error) {
	if h.hosted != "" {
		return h.hostedRuns(ctx)
	}
	cm := &operatorv1.ClusterManager{}
	cm.Name = operatorv1.DefaultClusterManagerName
	components, err := (&hub.StatusOptions{Hub: h.o.Hub}).Components(ctx, cm)
	if err != nil {
		return nil, err
	}
	if h.runner == nil {
		return []Finding{failure(CodeHubRuns, "nothing runs the hub: there is no deployment "+operatorv1.NamespaceOperator+"/"+
			operatorv1.DefaultClusterManagerName, "", h.fix())}, nil
	}
	var out []Finding
	well := true
	for _, k := range components {
		f := Finding{Code: CodeHubRuns, Severity: SeverityOK, Title: fmt.Sprintf("%s %d/%d ready, %s", k.Name, k.Ready.Good, k.Ready.Total, k.Version)}
		if k.Ready.Good < k.Ready.Total {
			well = false
			f.Severity, f.Cause = SeverityError, k.Message
			f.Fix = fleet.ShowLogs.On(h.o.Hub, "namespace", k.Namespace, "name", k.Deployment)
			switch {
			case k.Stopped && !h.others:
				f.Fix = h.fix()
			case k.Stopped:
				f.Fix = workload.ScaleUp.On(h.o.Hub, "namespace", k.Namespace, "name", k.Deployment)
			}
		}
		out = append(out, f)
	}
	if well && !h.others {
		// A ready process only answers probes; whether its loops run shows only in their
		// lease.
		why, err := hub.Idle(ctx, h.o.Hub, h.run.Now())
		if err != nil {
			return out, err
		}
		if why != "" {
			fix := workload.Restart.On(h.o.Hub, "namespace", h.runner.Namespace, "name", h.runner.Name)
			out = append(out, failure(CodeHubRuns, "the hub's loops do not run", why, fix))
		}
	}
	return out, nil
}

// foreign reports what others have added to the Deployment of our hub.
func (h *hubCheck) foreign(context.Context) ([]Finding, error) {
	switch {
	case h.runner == nil:
		return nil, nil
	case h.others:
		return good(CodeHubForeign, "the hub is run by another operator, %s", fleet.OrElse(hub.ImageOf(h.runner), h.runner.Name)), nil
	}
	if parts := hub.ForeignParts(h.runner); parts != "" {
		title := "deployment " + h.runner.Namespace + "/" + h.runner.Name + " is not as installed"
		return []Finding{failure(CodeHubForeign, title, "set by others: "+parts, h.fix())}, nil
	}
	return nil, nil
}

func (h *hubCheck) address(ctx context.Context) ([]Finding, error) {
	server := h.o.Hub.Server()
	if info, err := trust.Published(ctx, h.o.Hub); err == nil {
		server = info.Server
	}
	if trust.IsLoopback(server) {
		fix := PublishAddress.On(h.o.Hub)
		if h.others {
			fix = JoinByAddress.With()
		}
		return []Finding{warning(CodeHubAddress, server+" is only valid on this machine: agents elsewhere cannot join", "", fix)}, nil
	}
	return good(CodeHubAddress, "agents reach it at %s", server), nil
}

// kinds reports kinds that are missing, and those that are stored in versions that end.
func (h *hubCheck) kinds(ctx context.Context) ([]Finding, error) {
	wanted, err := crd.Hub()
	if err != nil {
		return nil, err
	}
	items, err := fleet.ListAll(ctx, h.o.Hub, fleet.Query{Resource: fleet.Definitions})
	if err != nil {
		return nil, fleet.Explain("listing definitions", h.o.Hub, err)
	}
	stale, err := h.stored(ctx, items)
	if err != nil {
		return stale, err
	}
	var missing []string
	for _, d := range wanted {
		if !slices.ContainsFunc(items, func(u unstructured.Unstructured) bool {
			return u.GetName() == d.GetName() && fleet.ConditionTrue(&u, "Established")
		}) {
			missing = append(missing, d.GetName())
		}
	}
	if len(missing) > 0 {
		title := fmt.Sprintf("%d of %d kinds are not served", len(missing), len(wanted))
		return append(stale, failure(CodeHubKinds, title, fleet.Listed(missing), h.fix())), nil
	}
	return append(good(CodeHubKinds, "%d kinds are served", len(wanted)), stale...), nil
}

// admission reports which webhook is missing or does not answer.
func (h *hubCheck) admission(ctx context.Context) ([]Finding, error) {
	faults, asked, err := hub.CheckAdmission(ctx, h.o.Hub, h.others)
	if err != nil {
		return nil, err
	}
	var out []Finding
	for _, f := range faults {
		if f.Unasked {
			out = append(out, warning(CodeHubAdmission, f.Title, f.Cause, CheckAsAdmin.On(h.o.Hub)))
		} else {
			out = append(out, failure(CodeHubAdmission, f.Title, f.Cause, h.fix()))
		}
	}
	if out == nil {
		out = good(CodeHubAdmission, "%d webhooks answer", asked)
	}
	return out, nil
}

func (c *checking) signer(ctx context.Context) ([]Finding, error) {
	// Without the right to read the lease, or on a control plane without one, nothing is
	// reported.
	if away, err := hub.SignerAway(ctx, c.run, c.o.Hub); err == nil && away > 0 {
		return []Finding{failure(CodeHubSigner, fmt.Sprintf("kube-controller-manager has not been alive for %s", away), "it signs the agents' certificates",
			ShowSigner.On(c.o.Hub, "lease", hub.ControllerLease, "namespace", metav1.NamespaceSystem))}, nil
	}
	return nil, nil
}
