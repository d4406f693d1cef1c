// SPDX-License-Identifier: Apache-2.0

package clustermanager

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
)

// partsName is the id of the loop that keeps parts of the installation.
const partsName = "clustermanager.parts"

var (
	namespacesResource = corev1.SchemeGroupVersion.WithResource("namespaces")
	accountsResource   = corev1.SchemeGroupVersion.WithResource("serviceaccounts")
	servicesResource   = corev1.SchemeGroupVersion.WithResource("services")
	bindingsResource   = rbacv1.SchemeGroupVersion.WithResource("rolebindings")
)

// part is one object of the installation that this process puts back.
type part struct {
	// Wanted is the object as an installer applies it.
	Wanted *unstructured.Unstructured
	// Version is the resourceVersion found, empty when there is none.
	Version string
	// Kept is true when the object says all that is wanted, and Ending when it is being
	// deleted.
	Kept, Ending bool
}

// partsState is everything that a decision about the parts needs.
type partsState struct {
	// ClusterManager is the one that the parts belong to.
	ClusterManager *operatorv1.ClusterManager
	// Parts in the order to apply.
	Parts []part
}

// decideParts is pure: what is missing or changed is applied unless the
// ClusterManager is being deleted, and nothing into a namespace that is going.
func decideParts(s partsState) reconcile.Plan {
	var plan reconcile.Plan
	if s.ClusterManager.DeletionTimestamp != nil {
		return plan
	}
	going := map[string]bool{}
	for _, p := range s.Parts {
		if p.Ending && p.Wanted.GetKind() == "Namespace" {
			going[p.Wanted.GetName()] = true
		}
		if p.Kept || p.Ending || going[p.Wanted.GetNamespace()] {
			continue
		}
		plan.Writes = append(plan.Writes, reconcile.Apply{Object: p.Wanted, LiveVersion: p.Version})
	}
	return plan
}

// place is where parts of one kind are.
type place struct {
	resource  schema.GroupVersionResource
	namespace string
}

func placeOf(u *unstructured.Unstructured) place {
	return place{reconcile.ResourceOf(u.GroupVersionKind()), u.GetNamespace()}
}

// partsOf are the objects of an installation that the process may put back: its
// Services, then the namespace of its certificates, its rights there, and the account of
// the add-on manager. What an installer shapes by options is not among them.
func partsOf(version string) ([]*unstructured.Unstructured, error) {
	objects, err := hub.Objects(hub.Options{Version: version})
	if err != nil {
		return nil, err
	}
	var ordered []*unstructured.Unstructured
	// The namespace and the rights in it come before what needs them.
	for _, p := range []place{
		{servicesResource, hub.Namespace}, {namespacesResource, ""}, {bindingsResource, hub.ComponentNamespace},
		{accountsResource, hub.ComponentNamespace}, {servicesResource, hub.ComponentNamespace},
	} {
		for _, u := range objects {
			if placeOf(u) == p && (p.namespace != "" || u.GetName() == hub.ComponentNamespace) {
				ordered = append(ordered, u)
			}
		}
	}
	return ordered, nil
}

// parts keeps the objects that this process, its admission and its rights need of the
// installation. It is a loop of its own, because the collections of the other one
// cannot be read before the rights are there.
type parts struct {
	collections *Collections
	objects     []*unstructured.Unstructured
	watches     map[place]*watch.Collection[part]
	exec        *reconcile.Executor
	queue       *reconcile.Queue
}

func newParts(config Config, collections *Collections, log logr.Logger) (*parts, error) {
	objects, err := partsOf(config.Version)
	if err != nil {
		return nil, err
	}
	p := &parts{
		collections: collections, objects: objects, exec: reconcile.NewExecutor(config.Client, partsName, config.Clock), queue: reconcile.NewQueue(partsName),
	}
	wanted := map[place]map[string]*unstructured.Unstructured{}
	for _, u := range objects {
		at := placeOf(u)
		if wanted[at] == nil {
			wanted[at] = map[string]*unstructured.Unstructured{}
		}
		wanted[at][u.GetName()] = u
	}
	p.watches = watchParts(config.Client, log, wanted)
	return p, nil
}

// onChange calls f when anything of it changes.
func (p *parts) onChange(f func()) {
	for _, w := range p.watches {
		w.OnChange(func(reconcile.Key) { f() })
	}
}

func (p *parts) wake() { p.queue.Add(reconcile.Key{Name: hub.Name}) }

// watchParts watches what is wanted: one object by its name, several by their label.
func watchParts(client dynamic.Interface, log logr.Logger, wanted map[place]map[string]*unstructured.Unstructured) map[place]*watch.Collection[part] {
	out := map[place]*watch.Collection[part]{}
	for at, objects := range wanted {
		o := watch.Options[part]{Client: client, Resource: at.resource, Namespace: at.namespace, Log: log}
		for name := range objects {
			o.FieldSelector = byName(name)
		}
		if len(objects) > 1 {
			o.FieldSelector, o.LabelSelector = "", operatorv1.LabelCreatedByClusterManager+"="+hub.Name
		}
		o.Keep = func(u *unstructured.Unstructured) (part, bool) { return keepPart(u, objects[u.GetName()]), true }
		out[at] = watch.New(o)
	}
	return out
}

// keepPart compares what is found with what is wanted; nil is wanted of foreign objects.
func keepPart(live, wanted *unstructured.Unstructured) part {
	p := part{Version: live.GetResourceVersion(), Ending: live.GetDeletionTimestamp() != nil}
	if wanted == nil {
		return p
	}
	p.Kept = true
	for key, value := range wanted.Object {
		// Of the items of a list neither is told.
		if key != "apiVersion" && key != "kind" {
			p.Kept = p.Kept && covers(live.Object[key], value)
		}
	}
	return p
}

func (p *parts) runs() []func(context.Context) error {
	out := []func(context.Context) error{p.loop}
	for _, w := range p.watches {
		out = append(out, w.Run)
	}
	return out
}

func (p *parts) loop(ctx context.Context) error {
	waits := []func(context.Context) error{p.collections.managers.WaitSynced}
	for _, w := range p.watches {
		waits = append(waits, w.WaitSynced)
	}
	for _, synced := range waits {
		if err := synced(ctx); err != nil {
			return ended(ctx, err)
		}
	}
	p.wake()
	return reconcile.Loop{Name: partsName, Reconcile: p.reconcile}.Run(ctx, p.queue)
}

// reconcile puts back what is missing.
func (p *parts) reconcile(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
	cm, ok := p.collections.managers.Get(key)
	if !ok {
		return reconcile.Result{}, nil
	}
	s := partsState{ClusterManager: cm}
	for _, u := range p.objects {
		found, _ := p.watches[placeOf(u)].Get(reconcile.Key{Namespace: u.GetNamespace(), Name: u.GetName()})
		found.Wanted = u.DeepCopy()
		s.Parts = append(s.Parts, found)
	}
	result, err := p.exec.Execute(ctx, cm, decideParts(s))
	if err != nil {
		return result, fmt.Errorf("putting back parts of the installation: %w", err)
	}
	return result, nil
}
