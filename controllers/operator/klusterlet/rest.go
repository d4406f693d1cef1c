// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"context"
	"fmt"
	"slices"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// startPatience is how long a new Klusterlet may take to get an agent of its own before it
// counts as not served.
const startPatience = 20 * time.Second

var (
	namespacesResource  = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	deploymentsResource = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
)

// Namespace is the live state of a namespace.
type Namespace struct {
	// ResourceVersion is empty when the namespace is absent.
	ResourceVersion string
	// Owner is the Klusterlet that the namespace is labelled with.
	Owner string
	// Leaving is true when the namespace is being deleted.
	Leaving bool
}

// watchRest watches what the loop maintains or reports besides its Klusterlet.
func (c *Controller) watchRest(wake func(reconcile.Key)) {
	c.others = watch.New(watch.Options[*operatorv1.Klusterlet]{
		Client: c.config.Spoke, Resource: klusterletsResource, FieldSelector: "metadata.name!=" + c.config.Name, Log: c.config.Log,
		Keep: func(u *unstructured.Unstructured) (*operatorv1.Klusterlet, bool) {
			u.SetManagedFields(nil)
			delete(u.Object, "spec")
			k, err := typed.FromUnstructured[operatorv1.Klusterlet](u)
			return k, err == nil
		},
	})
	c.others.OnChange(func(key reconcile.Key) {
		c.queue.Add(key)
		c.Wake()
	})
	c.addOns = watch.New(watch.Options[Namespace]{
		Client: c.config.Spoke, Resource: namespacesResource, FieldSelector: "metadata.name=" + operatorv1.NamespaceAgentAddOn, Log: c.config.Log,
		Keep: func(u *unstructured.Unstructured) (Namespace, bool) {
			owner := u.GetLabels()[operatorv1.LabelCreatedByKlusterlet]
			return Namespace{ResourceVersion: u.GetResourceVersion(), Owner: owner, Leaving: u.GetDeletionTimestamp() != nil}, true
		},
	})
	c.addOns.OnChange(wake)
	c.deployment = watch.New(watch.Options[int64]{
		Client: c.config.Spoke, Resource: deploymentsResource, Namespace: c.config.Namespace,
		FieldSelector: "metadata.name=" + operatorv1.AgentDeployment(c.config.Name), Log: c.config.Log,
		Keep: func(u *unstructured.Unstructured) (int64, bool) { return u.GetGeneration(), true },
	})
	c.deployment.OnChange(wake)
}

// addOnNamespace restores the namespace of add-ons once it is completely gone. Deleting it,
// for example with a work that contained it, removes all add-ons.
func (s State) addOnNamespace() []reconcile.Write {
	if s.AddOnNamespace.Leaving {
		return nil
	}
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{
			"name":        operatorv1.NamespaceAgentAddOn,
			"labels":      map[string]any{operatorv1.LabelCreatedByKlusterlet: s.owner(s.AddOnNamespace.Owner)},
			"annotations": map[string]any{"workload.openshift.io/allowed": "management"},
		},
	}}
	return []reconcile.Write{reconcile.Apply{Object: u, LiveVersion: s.AddOnNamespace.ResourceVersion}}
}

// reconcileOther reconciles a Klusterlet that this process does not serve.
func (c *Controller) reconcileOther(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
	k, ok := c.others.Get(key)
	if !ok {
		return reconcile.Result{}, nil
	}
	s := State{Now: c.config.Clock.Now(), Klusterlet: k}
	plan := s.notServed(c.config.Name)
	if plan.Object == nil {
		return reconcile.Result{RequeueAfter: plan.RequeueAfter}, nil
	}
	return c.execute.Execute(ctx, k, plan)
}

// notServed sets Served to False on a Klusterlet that nothing has served since it was created a
// while ago, and removes the condition once an operator has put its finalizer on it.
func (s State) notServed(served string) reconcile.Plan {
	next := s.Klusterlet.DeepCopy()
	before := apimeta.FindStatusCondition(next.Status.Conditions, conditionServed)
	if len(next.Finalizers) > 0 || next.DeletionTimestamp != nil {
		if before == nil || next.DeletionTimestamp != nil {
			return reconcile.Plan{}
		}
		apimeta.RemoveStatusCondition(&next.Status.Conditions, conditionServed)
		return reconcile.Plan{Object: next}
	}
	if left := next.CreationTimestamp.Add(startPatience).Sub(s.Now); left > 0 {
		return reconcile.Plan{RequeueAfter: left}
	}
	message := fmt.Sprintf("The agent in this cluster serves klusterlet/%s alone: kubectl ocm join NAME --klusterlet %s installs one for this Klusterlet", served, next.Name)
	s.setCondition(next, conditionServed, metav1.ConditionFalse, reasonNotServed, message)
	plan := reconcile.Plan{Object: next}
	if before == nil {
		plan.Events = []reconcile.Event{{Type: "Warning", Reason: reasonNotServed, Message: message}}
	}
	return plan
}

// owner returns the Klusterlet with which an object is labelled that all agents of a cluster
// share: the one it is labelled with, as long as that one stays. Otherwise two agents would
// relabel it in turns.
func (s State) owner(labelled string) string {
	if slices.Contains(s.Others, labelled) {
		return labelled
	}
	return s.Klusterlet.Name
}
