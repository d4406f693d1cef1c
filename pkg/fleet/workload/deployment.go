// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// Repair returns the fix that restores what belongs to a hub: our program for our hub; for
// another one a restart of its operator, which checks everything when it starts.
func Repair(c *fleet.Cluster, others bool) fleet.Fix {
	if others {
		return Restart.On(c, "namespace", operatorv1.NamespaceOperator, "name", operatorv1.DefaultClusterManagerName)
	}
	return InstallHub.On(c)
}

// Wanted returns how many pods a Deployment must have to do its work. One that is scaled to 0
// has all the pods it asks for, and does nothing.
func Wanted(d *appsv1.Deployment) int32 {
	return max(1, ptr.Deref(d.Spec.Replicas, 1))
}

// ScaledDown reports whether a Deployment asks for no pod.
func ScaledDown(d *appsv1.Deployment) bool { return ptr.Deref(d.Spec.Replicas, 1) == 0 }

// ScaledDownText describes such a Deployment.
const ScaledDownText = "it is scaled to 0"

// Ready returns how many pods of a Deployment do its work. The pods of one that is scaled to 0 are
// ending, even while its status still counts them.
func Ready(d *appsv1.Deployment) int32 {
	if ScaledDown(d) {
		return 0
	}
	return d.Status.ReadyReplicas
}

// RolledOut reports whether all pods of a Deployment are of its newest revision and ready, and
// how many are.
func RolledOut(d *appsv1.Deployment) (bool, string) {
	want := Wanted(d)
	s := d.Status
	ready := fmt.Sprintf("%d/%d ready", Ready(d), want)
	return !ScaledDown(d) && s.ObservedGeneration >= d.Generation && s.UpdatedReplicas == want && s.AvailableReplicas == want && s.Replicas == want, ready
}

// Deployed waits until a Deployment has rolled out, and returns how many pods are ready.
func Deployed(ctx context.Context, r *fleet.Run, c *fleet.Cluster, namespace, name string) (ready string, err error) {
	err = UnlessHopeless(ctx, r, c, types.NamespacedName{Namespace: namespace, Name: name}, func(ctx context.Context) error {
		q := await.Query{Client: c.Client, Resource: fleet.Deployments, Namespace: namespace, Name: name, Clock: r.Given.Clock}
		return await.Objects(ctx, q, func(items []*unstructured.Unstructured) (bool, error) {
			if len(items) == 0 {
				return false, nil
			}
			d, err := typed.FromUnstructured[appsv1.Deployment](items[0])
			if err != nil {
				return false, err
			}
			var ok bool
			ok, ready = RolledOut(d)
			r.Detail(ready)
			return ok, nil
		})
	})
	return ready, r.TimedOut(ctx, err, "deployment/"+name, func(ctx context.Context) *fleet.Blocker {
		return Blocker(ctx, c, namespace, name)
	})
}

// End deletes Deployments, their pods first, and waits until all are gone: what the pods did has
// ended by then.
func End(ctx context.Context, r *fleet.Run, c *fleet.Cluster, all ...*appsv1.Deployment) error {
	policy := metav1.DeletePropagationForeground
	for _, d := range all {
		err := c.Client.Resource(fleet.Deployments).Namespace(d.Namespace).Delete(ctx, d.Name,
			metav1.DeleteOptions{PropagationPolicy: &policy, Preconditions: &metav1.Preconditions{UID: &d.UID}})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fleet.Explain("removing deployment "+d.Namespace+"/"+d.Name, c, err)
		}
	}
	for _, d := range all {
		if err := Await(ctx, r, c, d, func(live *appsv1.Deployment) bool { return live.UID != d.UID }); err != nil {
			return err
		}
	}
	return nil
}

// Await waits until a Deployment whose pods are to end is gone, or as it is wanted.
func Await(ctx context.Context, r *fleet.Run, c *fleet.Cluster, d *appsv1.Deployment, done func(*appsv1.Deployment) bool) error {
	q := await.Query{Client: c.Client, Resource: fleet.Deployments, Namespace: d.Namespace, Name: d.Name, Clock: r.Given.Clock}
	err := await.Objects(ctx, q, func(items []*unstructured.Unstructured) (bool, error) {
		if len(items) == 0 {
			return true, nil
		}
		live, err := typed.FromUnstructured[appsv1.Deployment](items[0])
		return err == nil && done(live), err
	})
	return r.TimedOut(ctx, err, "the pods of deployment "+d.Namespace+"/"+d.Name+" to end", nil)
}
