// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/config/crd"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/teardown"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// hub looks at the hub itself.
func (c *checking) hub(ctx context.Context) []CheckArea {
	name := "hub (" + c.o.Hub.where() + ")"
	h := &hubCheck{checking: c}
	var err error
	if h.runner, err = hubDeployment(ctx, c.o.Hub); err != nil {
		return []CheckArea{{Name: name, Findings: append(c.all(ctx, []check{c.reach(codeHubReached, c.o.Hub)}), unreadable(codeHubRuns, err))}}
	}
	h.others = othersHub(h.runner)
	found := c.all(ctx, []check{
		c.reach(codeHubReached, c.o.Hub),
		{codeHubInstalled, c.installed},
		{codeHubRuns, h.runs},
		{codeHubForeign, h.foreign},
		{codeHubAddress, h.address},
		{codeHubKinds, h.kinds},
		{codeHubAdmission, h.admission},
		{codeHubSigner, c.signer},
	})
	return []CheckArea{{Name: name, Findings: found}}
}

// hubCheck is one hub that is looked at.
type hubCheck struct {
	*checking
	// runner runs the hub, nil where nothing does; others tells that it is the
	// operator of somebody else.
	runner *appsv1.Deployment
	others bool
}

// fix puts back what belongs to the hub.
func (h *hubCheck) fix() string { return repair(h.o.Hub, h.others) }

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

func (h *hubCheck) runs(ctx context.Context) ([]Finding, error) {
	cm := &operatorv1.ClusterManager{}
	cm.Name = operatorv1.DefaultClusterManagerName
	components, err := (&StatusOptions{Hub: h.o.Hub}).components(ctx, cm)
	if err != nil {
		return nil, err
	}
	if h.runner == nil {
		return []Finding{{Severity: SeverityError, Title: "nothing runs the hub: there is no deployment " + operatorv1.NamespaceOperator + "/" + operatorv1.DefaultClusterManagerName, Fix: h.fix()}}, nil
	}
	var out []Finding
	well := true
	for _, k := range components {
		f := Finding{Severity: SeverityOK, Title: fmt.Sprintf("%s %d/%d ready, %s", k.Name, k.Ready.Good, k.Ready.Total, k.Version)}
		if k.Ready.Good < k.Ready.Total {
			well = false
			f.Severity, f.Cause = SeverityError, k.Message
			f.Fix = fmt.Sprintf("kubectl logs -n %s deploy/%s%s", k.namespace, k.deployment, h.o.Hub.flag())
			switch {
			case k.stopped && !h.others:
				f.Fix = h.fix()
			case k.stopped:
				f.Fix = fmt.Sprintf("kubectl scale -n %s deploy/%s --replicas=1%s", k.namespace, k.deployment, h.o.Hub.flag())
			}
		}
		out = append(out, f)
	}
	if well && !h.others {
		// Who is ready answers; whether the loops go on is told by their lease alone.
		why, err := idle(ctx, h.o.Hub, h.run.now())
		if err != nil {
			return out, err
		}
		if why != "" {
			out = append(out, Finding{Severity: SeverityError, Title: "the hub's loops do not run", Cause: why,
				Fix: fmt.Sprintf("kubectl rollout restart -n %s deploy/%s%s", h.runner.Namespace, h.runner.Name, h.o.Hub.flag())})
		}
	}
	return out, nil
}

// foreign tells what somebody else put into the Deployment of our hub.
func (h *hubCheck) foreign(context.Context) ([]Finding, error) {
	switch {
	case h.runner == nil:
		return nil, nil
	case h.others:
		return good("the hub is run by another operator, %s", orElse(imageOf(h.runner), h.runner.Name)), nil
	}
	if parts := foreignParts(h.runner); parts != "" {
		return []Finding{{Severity: SeverityError, Title: "deployment " + h.runner.Namespace + "/" + h.runner.Name + " is not as it was installed",
			Cause: "somebody else set: " + parts, Fix: h.fix()}}, nil
	}
	return nil, nil
}

func (h *hubCheck) address(ctx context.Context) ([]Finding, error) {
	server := h.o.Hub.Server()
	if info, err := publishedInfo(ctx, h.o.Hub); err == nil {
		server = info.server
	}
	if isLoopback(server) {
		f := Finding{Severity: SeverityWarning, Title: server + " means this machine only: agents elsewhere cannot join",
			Fix: "kubectl ocm hub init --apiserver-url https://<reachable>:6443" + h.o.Hub.flag()}
		if h.others {
			f.Fix = "name another address where you join: kubectl ocm join <name> --hub-apiserver https://<reachable>:6443"
		}
		return []Finding{f}, nil
	}
	return good("agents reach it at %s", server), nil
}

func (h *hubCheck) kinds(ctx context.Context) ([]Finding, error) {
	wanted, err := crd.Hub()
	if err != nil {
		return nil, err
	}
	items, err := listAll(ctx, h.o.Hub, query{resource: definitions})
	if err != nil {
		return nil, explain("listing definitions", h.o.Hub, err)
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
		return []Finding{{Severity: SeverityError, Title: fmt.Sprintf("%d of %d kinds are not served", len(missing), len(wanted)), Cause: listed(missing), Fix: h.fix()}}, nil
	}
	return good("%d kinds are served", len(wanted)), nil
}

// maxFaults bounds the webhooks that are told of one by one.
const maxFaults = 2

// admission tells which webhook is not there, or does not answer.
func (h *hubCheck) admission(ctx context.Context) ([]Finding, error) {
	probes := probesOf(h.others)
	faults, err := h.configured(ctx, probes)
	if err != nil {
		return nil, err
	}
	known := func(name string) bool {
		return slices.ContainsFunc(faults, func(f admissionFault) bool { return f.name == name })
	}
	asked, err := askAdmission(ctx, h.o.Hub, slices.DeleteFunc(slices.Clone(probes), func(p admissionProbe) bool { return known(p.name) }))
	if err != nil {
		return nil, err
	}
	all := len(probes)
	if !h.others {
		all += len(unaskable)
	}
	return h.faults(append(faults, asked...), len(probes), all), nil
}

// faults makes findings, of as many webhooks as there are and as can be asked. What could not be asked is told of where nothing else is:
// one webhook that does not answer keeps others from being asked.
func (h *hubCheck) faults(found []admissionFault, asked, all int) []Finding {
	var broken, unasked []admissionFault
	for _, f := range found {
		if f.unasked {
			unasked = append(unasked, f)
		} else {
			broken = append(broken, f)
		}
	}
	switch {
	case len(broken) > maxFaults:
		var names []string
		for _, f := range broken {
			names = append(names, f.name)
		}
		return []Finding{{Severity: SeverityError, Title: fmt.Sprintf("%d of %d webhooks do not answer", len(broken), all),
			Cause: orElse(broken[0].cause, broken[0].title) + "; " + strings.Join(names, ", "), Fix: h.fix()}}
	case len(broken) > 0:
		var out []Finding
		for _, f := range broken {
			out = append(out, Finding{Severity: SeverityError, Title: f.title, Cause: f.cause, Fix: h.fix()})
		}
		return out
	case len(unasked) > 0:
		return []Finding{{Severity: SeverityWarning, Title: fmt.Sprintf("%d of %d webhooks could not be asked", len(unasked), asked), Cause: unasked[0].cause,
			Fix: "kubectl ocm check hub" + h.o.Hub.flag() + "      as a user with the rights of cluster-admin"}}
	}
	return good("%d webhooks answer", asked)
}

// configured tells which of the webhooks have no configuration, or one that names no
// CA: that says more than their silence.
func (h *hubCheck) configured(ctx context.Context, probes []admissionProbe) ([]admissionFault, error) {
	wanted := func(name string) bool {
		return (!h.others && slices.Contains(unaskable, name)) || slices.ContainsFunc(probes, func(p admissionProbe) bool { return p.name == name })
	}
	validating, mutating := teardown.HubAdmission()
	var out []admissionFault
	for _, part := range []struct {
		q     query
		names []string
	}{{query{resource: validatingHooks}, validating}, {query{resource: mutatingHooks}, mutating}} {
		items, err := listAll(ctx, h.o.Hub, part.q)
		if err != nil {
			return nil, explain("listing "+part.q.resource.Resource, h.o.Hub, err)
		}
		for _, name := range part.names {
			i := slices.IndexFunc(items, func(u unstructured.Unstructured) bool { return u.GetName() == name })
			title := part.q.resource.Resource + "/" + name
			switch {
			case !wanted(name):
			case i < 0:
				out = append(out, admissionFault{name: name, title: title + " is not there", cause: "what it refuses is let through"})
			case !trusted(&items[i]):
				out = append(out, admissionFault{name: name, title: title + " has no CA", cause: "its calls fail"})
			}
		}
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
		return []Finding{{Severity: SeverityError, Title: fmt.Sprintf("kube-controller-manager has not been alive for %s", away), Cause: "it signs the agents' certificates",
			Fix: "kubectl get lease " + controllerLease + " -n " + metav1.NamespaceSystem + c.o.Hub.flag() + "      shows whether it renews again; start it on the hub's control plane"}}, nil
	}
	return nil, nil
}
