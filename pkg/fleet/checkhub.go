// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/config/crd"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/teardown"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// hub looks at the hub itself.
func (c *checking) hub(ctx context.Context) []CheckArea {
	found := c.all(ctx, []check{
		c.reach(codeHubReached, c.o.Hub),
		{codeHubInstalled, c.installed},
		{codeHubRuns, c.runs},
		{codeHubAddress, c.address},
		{codeHubKinds, c.kinds},
		{codeHubAdmission, c.admission},
		{codeHubSigner, c.signer},
		{codeHubForeign, c.foreign},
	})
	return []CheckArea{{Name: "hub (" + c.o.Hub.where() + ")", Findings: found}}
}

func (c *checking) manager(ctx context.Context) (*operatorv1.ClusterManager, error) {
	cm, err := typed.Get[operatorv1.ClusterManager](ctx, c.o.Hub.Client, clusterManagers, "", operatorv1.DefaultClusterManagerName)
	if apierrors.IsNotFound(err) {
		return nil, notHub(c.o.Hub, "there is no clustermanager/"+operatorv1.DefaultClusterManagerName)
	}
	return cm, explain("reading clustermanager/"+operatorv1.DefaultClusterManagerName, c.o.Hub, err)
}

func (c *checking) installed(ctx context.Context) ([]Finding, error) {
	cm, err := c.manager(ctx)
	if err != nil {
		return nil, err
	}
	var out []Finding
	for _, problem := range problems(cm) {
		out = append(out, Finding{Severity: SeverityError, Title: "the hub is not as it was declared", Cause: problem,
			Fix: "kubectl get clustermanager " + cm.Name + " -o yaml" + c.o.Hub.flag()})
	}
	if out == nil {
		out = good("clustermanager/%s applied", cm.Name)
	}
	return out, nil
}

func (c *checking) runs(ctx context.Context) ([]Finding, error) {
	cm := &operatorv1.ClusterManager{}
	cm.Name = operatorv1.DefaultClusterManagerName
	components, err := (&StatusOptions{Hub: c.o.Hub}).components(ctx, cm)
	if err != nil {
		return nil, err
	}
	var out []Finding
	for _, k := range components {
		f := Finding{Severity: SeverityOK, Title: fmt.Sprintf("%s %d/%d ready, %s", k.Name, k.Ready.Good, k.Ready.Total, k.Version)}
		if k.Ready.Good < k.Ready.Total {
			f.Severity, f.Cause = SeverityError, k.Message
			f.Fix = "kubectl ocm hub status -o wide" + c.o.Hub.flag()
		}
		out = append(out, f)
	}
	if out == nil {
		out = []Finding{{Severity: SeverityError, Title: "no component of the hub is there", Fix: "kubectl ocm hub init" + c.o.Hub.flag()}}
	}
	return out, nil
}

func (c *checking) address(ctx context.Context) ([]Finding, error) {
	server := c.o.Hub.Server()
	if info, err := publishedInfo(ctx, c.o.Hub); err == nil {
		server = info.server
	}
	if isLoopback(server) {
		return []Finding{{Severity: SeverityWarning, Title: server + " means this machine only: agents elsewhere cannot join",
			Fix: "kubectl ocm hub init --apiserver-url https://<reachable>:6443" + c.o.Hub.flag()}}, nil
	}
	return good("agents reach it at %s", server), nil
}

func (c *checking) kinds(ctx context.Context) ([]Finding, error) {
	wanted, err := crd.Hub()
	if err != nil {
		return nil, err
	}
	items, err := listAll(ctx, c.o.Hub, query{resource: definitions})
	if err != nil {
		return nil, explain("listing definitions", c.o.Hub, err)
	}
	served := map[string]bool{}
	for i := range items {
		served[items[i].GetName()] = conditionTrue(&items[i], "Established")
	}
	var missing []string
	for _, d := range wanted {
		if !served[d.GetName()] {
			missing = append(missing, d.GetName())
		}
	}
	if len(missing) > 0 {
		return []Finding{{Severity: SeverityError, Title: fmt.Sprintf("%d of %d kinds are not served", len(missing), len(wanted)), Cause: listed(missing),
			Fix: "kubectl ocm hub init" + c.o.Hub.flag()}}, nil
	}
	return good("%d kinds are served", len(wanted)), nil
}

func (c *checking) admission(ctx context.Context) ([]Finding, error) {
	validating, mutating := teardown.HubAdmission()
	var out []Finding
	for _, part := range []struct {
		q      query
		wanted []string
	}{{query{resource: validatingHooks}, validating}, {query{resource: mutatingHooks}, mutating}} {
		items, err := listAll(ctx, c.o.Hub, part.q)
		if err != nil {
			return nil, explain("listing "+part.q.resource.Resource, c.o.Hub, err)
		}
		for _, name := range part.wanted {
			i := slices.IndexFunc(items, func(u unstructured.Unstructured) bool { return u.GetName() == name })
			title := part.q.resource.Resource + "/" + name
			switch {
			case i < 0:
				out = append(out, Finding{Severity: SeverityError, Title: title + " is not there", Cause: "what it refuses is let through", Fix: "kubectl ocm hub init" + c.o.Hub.flag()})
			case !trusted(&items[i]):
				out = append(out, Finding{Severity: SeverityError, Title: title + " has no CA", Cause: "its calls fail", Fix: "kubectl ocm hub init" + c.o.Hub.flag()})
			}
		}
	}
	if out == nil {
		out = good("%d admission configurations", len(validating)+len(mutating))
	}
	return out, nil
}

// trusted tells that every webhook of a configuration names its CA.
func trusted(u *unstructured.Unstructured) bool {
	hooks, _, _ := unstructured.NestedSlice(u.Object, "webhooks")
	return len(hooks) > 0 && !slices.ContainsFunc(hooks, func(h any) bool {
		m, _ := h.(map[string]any)
		ca, _, _ := unstructured.NestedString(m, "clientConfig", "caBundle")
		return ca == ""
	})
}

func (c *checking) signer(ctx context.Context) ([]Finding, error) {
	// Who may not read the lease, or runs a control plane without one, is not told.
	if away, err := signerAway(ctx, c.run, c.o.Hub); err == nil && away > 0 {
		return []Finding{{Severity: SeverityError, Title: fmt.Sprintf("kube-controller-manager has not been alive for %s", away), Cause: "it signs the agents' certificates"}}, nil
	}
	return nil, nil
}
