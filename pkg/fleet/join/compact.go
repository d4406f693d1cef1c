// SPDX-License-Identifier: Apache-2.0

package join

import (
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/member"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/retire"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/workload"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/write"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// servedLocks are the leases of the processes that an operator runs apart.
var servedLocks = []string{"registration-agent-lock", "work-agent-lock"}

// readServed returns the Deployments in which an operator of ours runs the agent.
func (j *join) readServed(ctx context.Context) ([]*appsv1.Deployment, error) {
	list, err := typed.List[appsv1.Deployment](ctx, j.Spoke.Client, fleet.Deployments, member.NamespaceFor(j.Klusterlet), metav1.ListOptions{})
	if err != nil {
		return nil, fleet.Explain("looking for the agent", j.Spoke, err)
	}
	names := append(operatorv1.AgentDeployments(j.Klusterlet, operatorv1.InstallModeDefault), operatorv1.AgentDeployment(j.Klusterlet))
	var out []*appsv1.Deployment
	for i := range list {
		if as := member.RunsOurs(&list[i]); slices.Contains(names, list[i].Name) && as != "" && as != "run" {
			out = append(out, &list[i])
		}
	}
	return out, nil
}

// checkPlace refuses to make a process of its own of an agent in a namespace that a join does not
// choose: its secrets are there.
func (j *join) checkPlace() error {
	if j.Layout != LayoutCompact || j.before == nil || j.before.Klusterlet.IsHosted() {
		return nil
	}
	if at := j.before.Klusterlet.AgentNamespace(); at != member.NamespaceFor(j.Klusterlet) {
		return fleet.Refuse("the agent cannot have the compact layout on "+j.Spoke.String(), "it runs in namespace "+at,
			fleet.Advice("set spec.namespace of klusterlet/"+j.Klusterlet+" to "+member.NamespaceFor(j.Klusterlet)+" first: its operator moves it there"))
	}
	return nil
}

// checkIdle finds out whether an operator that a join installed has no agent to run once this one is a
// process of its own.
func (j *join) checkIdle(ctx context.Context) error {
	if j.Layout != LayoutCompact {
		return nil
	}
	namespace, err := retire.Installed(ctx, j.Spoke)
	if err != nil || namespace == nil {
		return err
	}
	for _, k := range j.beside {
		d, err := typed.Get[appsv1.Deployment](ctx, j.Spoke.Client, fleet.Deployments, k.AgentNamespace(), operatorv1.AgentDeployment(k.Name))
		switch {
		case k.IsHosted() || apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return fleet.Explain("reading the agent of klusterlet/"+k.Name, j.Spoke, err)
		case member.RunsOurs(d) != "run":
			return nil
		}
	}
	j.idle = namespace
	return nil
}

// stopServed ends what an operator runs for an agent that is to be a process of its own. That process
// comes first, with no pod: whoever serves Klusterlets sees its Deployment, and leaves everything of
// this one alone. The identity of the agent and everything that works applied stay.
func (j *join) stopServed(ctx context.Context) error {
	if len(j.served) == 0 || j.isServed() || j.Reads() {
		return nil
	}
	j.Step("former agent ended")
	own, err := j.claim(ctx)
	if err != nil {
		return err
	}
	// An operator that was about to write a Deployment has done so when the pods have ended.
	for more := true; more; more = len(j.served) > 0 {
		if j.served, err = j.readServed(ctx); err != nil {
			return err
		}
		if err := workload.End(ctx, j.Run, j.Spoke, j.served...); err != nil {
			return err
		}
	}
	err = workload.Await(ctx, j.Run, j.Spoke, own, func(live *appsv1.Deployment) bool {
		return live.Status.ObservedGeneration >= live.Generation && live.Status.Replicas == 0
	})
	if err != nil {
		return err
	}
	j.stopped = true
	j.Done("klusterlet/" + j.Klusterlet + " and what works applied stay")
	return nil
}

// claim writes the Deployment of an agent that is a process of its own, without a pod. In the mode
// Singleton an operator gives its Deployment the same name, of which nothing stays.
func (j *join) claim(ctx context.Context) (*appsv1.Deployment, error) {
	objects, err := j.objects(j.image())
	if err != nil {
		return nil, err
	}
	own := objects[slices.IndexFunc(objects, func(u *unstructured.Unstructured) bool { return u.GetKind() == "Deployment" })].DeepCopy()
	if err := unstructured.SetNestedField(own.Object, int64(0), "spec", "replicas"); err != nil {
		return nil, err
	}
	live, err := write.Live(ctx, j.Spoke, own)
	if err == nil && live != nil && slices.ContainsFunc(j.served, func(d *appsv1.Deployment) bool { return d.Name == own.GetName() }) {
		live.Object["spec"] = own.Object["spec"]
		live.SetAnnotations(own.GetAnnotations())
		_, err = j.Spoke.Client.Resource(fleet.Deployments).Namespace(own.GetNamespace()).Update(ctx, live, metav1.UpdateOptions{FieldManager: fleet.FieldManager})
	}
	if err != nil {
		return nil, fleet.Explain("replacing "+fleet.Describe(own), j.Spoke, err)
	}
	if _, err := write.All(ctx, j.Run, j.Spoke, []*unstructured.Unstructured{own}); err != nil {
		return nil, err
	}
	return typed.Get[appsv1.Deployment](ctx, j.Spoke.Client, fleet.Deployments, own.GetNamespace(), own.GetName())
}

// leaveOperator waits for an agent that is a process of its own again, and removes what only the
// operator needed.
func (j *join) leaveOperator(ctx context.Context) error {
	if j.isServed() || j.Reads() || (!j.stopped && j.idle == nil) {
		return nil
	}
	j.Step("layout changed")
	if _, err := workload.Deployed(ctx, j.Run, j.Spoke, j.namespace(), operatorv1.AgentDeployment(j.Klusterlet)); err != nil {
		return err
	}
	for _, name := range servedLocks {
		if err := fleet.Remove(ctx, j.Spoke, fleet.Named(leaseKind, j.namespace(), name)); err != nil {
			return fleet.Explain("removing lease "+name, j.Spoke, err)
		}
	}
	detail := "the agent is a process of its own"
	if j.idle != nil {
		if err := retire.Operator(ctx, j.Run, j.Spoke, j.idle, true); err != nil {
			return err
		}
		detail += "; the operator, which has no other to run, is removed"
	}
	j.Done(detail)
	return nil
}
