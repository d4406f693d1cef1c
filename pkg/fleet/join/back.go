// SPDX-License-Identifier: Apache-2.0

package join

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/config/agent"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/hub"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/member"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/workload"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/write"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// BackOptions say which agent to give back.
type BackOptions struct {
	fleet.Common
	// Name is the name that the cluster must have on its hub; empty accepts any.
	Name string
	// Spoke is the cluster of the agent.
	Spoke *fleet.Cluster
	// Klusterlet is the name of the Klusterlet that declares the agent; empty means the default.
	Klusterlet string
}

// BackResult is the result of Back.
type BackResult struct {
	// Cluster is the name on the hub.
	Cluster string `json:"cluster"`
	// To is the image of the operator that serves the Klusterlet again.
	To string `json:"to"`
	// Items are the objects that are affected, and what happens to them.
	Items []fleet.Planned `json:"items"`
}

// Back gives a cluster that was taken over (Options.Adopt) back to the operator that was stopped
// then, which makes its agents from the same Klusterlet, certificate and records of works. It can
// be repeated after any failure.
func Back(ctx context.Context, o BackOptions) (BackResult, error) {
	ctx, cancel, r := o.Begin(ctx)
	defer cancel()
	o.Klusterlet = cmp.Or(o.Klusterlet, operatorv1.DefaultKlusterletName)
	j := &join{Options: &Options{Common: o.Common, Name: o.Name, Spoke: o.Spoke, Klusterlet: o.Klusterlet}, Run: r}
	result := BackResult{Cluster: o.Name}
	r.Step("agent to give back")
	operator, ours, err := j.readTakenOver(ctx)
	if err != nil {
		return result, r.Fail(err)
	}
	result.Cluster, result.To = j.Name, hub.ImageOf(operator)
	rights, err := j.ownRights(ctx)
	if err != nil {
		return result, r.Fail(err)
	}
	deployment := appsv1.SchemeGroupVersion.WithKind("Deployment")
	if ours != nil {
		result.Items = append(result.Items, fleet.Planned{Object: fleet.Named(deployment, ours.Namespace, ours.Name), Fate: fleet.Removed})
	}
	for _, u := range rights {
		result.Items = append(result.Items, fleet.Planned{Object: fleet.Reference(u), Fate: fleet.Removed})
	}
	result.Items = append(result.Items,
		fleet.Planned{Object: fleet.Named(deployment, operator.Namespace, operator.Name), Fate: fleet.Restored, Note: "scaled to one"},
		fleet.Planned{Object: fleet.Named(operatorv1.GroupVersion.WithKind("Klusterlet"), "", j.Klusterlet), Fate: fleet.Kept},
		fleet.Planned{Object: fleet.Named(schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, j.namespace(), operatorv1.SecretHubKubeconfig), Fate: fleet.Kept})
	r.Done(result.To)
	if o.Reads() {
		return result, nil
	}
	return result, r.Fail(j.giveBack(ctx, operator, ours, rights))
}

// readTakenOver reads the other operator, which an adoption has stopped, and our agent; nil when it
// is gone already.
func (j *join) readTakenOver(ctx context.Context) (operator, ours *appsv1.Deployment, err error) {
	if _, err := fleet.ServerVersion(ctx, j.Spoke); err != nil {
		return nil, nil, err
	}
	if j.before, err = member.Read(ctx, j.Spoke, j.Klusterlet); err != nil {
		return nil, nil, err
	}
	nothing := func(cause string) error {
		return fleet.Refuse("there is nothing to give back on "+j.Spoke.String(), cause, fleet.Advice("leave it as it is"))
	}
	if j.before == nil || (j.Name != "" && j.Name != j.before.Name) {
		return nil, nil, nothing("there is no klusterlet/" + j.Klusterlet + " of " + cmp.Or(j.Name, "a cluster"))
	}
	j.Name = j.before.Name
	operator, err = typed.Get[appsv1.Deployment](ctx, j.Spoke.Client, fleet.Deployments, operatorv1.NamespaceOperator, member.OperatorDeployment)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil, nothing("it was not taken over: there is no deployment " + operatorv1.NamespaceOperator + "/" + member.OperatorDeployment)
	case err != nil:
		return nil, nil, fleet.Explain("reading the other operator", j.Spoke, err)
	}
	ours, err = typed.Get[appsv1.Deployment](ctx, j.Spoke.Client, fleet.Deployments, j.namespace(), operatorv1.AgentDeployment(j.Klusterlet))
	if apierrors.IsNotFound(err) || (err == nil && member.RunsOurs(ours) != "run") {
		ours, err = nil, nil
	}
	switch {
	case err != nil:
		return nil, nil, fleet.Explain("reading the agent", j.Spoke, err)
	case !workload.ScaledDown(operator):
		return nil, nil, nothing("deployment " + operator.Namespace + "/" + operator.Name + " is not stopped")
	}
	return operator, ours, nil
}

// ownRights returns the roles and bindings of our agent that are there, bindings first.
func (j *join) ownRights(ctx context.Context) ([]*unstructured.Unstructured, error) {
	objects, err := agent.Objects(agent.Options{Image: "-", ClusterName: j.Name, Klusterlet: j.Klusterlet, Namespace: j.namespace()})
	if err != nil {
		return nil, err
	}
	var out []*unstructured.Unstructured
	for _, u := range slices.Backward(objects) {
		if u.GroupVersionKind().GroupVersion() != rbacVersion {
			continue
		}
		live, err := write.Live(ctx, j.Spoke, u)
		if err != nil {
			return nil, fleet.Explain("reading "+fleet.Describe(u), j.Spoke, err)
		}
		if live != nil && live.GetLabels()[operatorv1.LabelCreatedByKlusterlet] == j.Klusterlet {
			out = append(out, live)
		}
	}
	return out, nil
}

// giveBack ends our agent and starts the other operator.
func (j *join) giveBack(ctx context.Context, operator, ours *appsv1.Deployment, rights []*unstructured.Unstructured) error {
	j.Step("our agent removed")
	if ours != nil {
		if err := workload.End(ctx, j.Run, j.Spoke, ours); err != nil {
			return err
		}
	}
	for _, u := range append([]*unstructured.Unstructured{fleet.Named(leaseKind, j.namespace(), othersLock)}, rights...) {
		if err := fleet.Remove(ctx, j.Spoke, u); err != nil {
			return fleet.Explain("removing "+fleet.Describe(u), j.Spoke, err)
		}
	}
	j.Done("klusterlet/" + j.Klusterlet + " and what works applied stay")
	j.Step("other operator started")
	patch := fmt.Appendf(nil, `{"metadata":{"uid":%q},"spec":{"replicas":1}}`, operator.UID)
	_, err := j.Spoke.Client.Resource(fleet.Deployments).Namespace(operator.Namespace).Patch(ctx, operator.Name, types.MergePatchType, patch,
		metav1.PatchOptions{FieldManager: fleet.FieldManager})
	if err != nil {
		return fleet.Explain("starting deployment "+operator.Namespace+"/"+operator.Name, j.Spoke, err)
	}
	if j.Wait {
		if _, err := workload.Deployed(ctx, j.Run, j.Spoke, operator.Namespace, operator.Name); err != nil {
			return err
		}
	}
	j.Done(hub.ImageOf(operator))
	return nil
}
