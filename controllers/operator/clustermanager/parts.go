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

// partsName is the id of the loop that restores parts of the installation.
const partsName = "clustermanager.parts"

var (
	namespacesResource = corev1.SchemeGroupVersion.WithResource("namespaces")
	accountsResource   = corev1.SchemeGroupVersion.WithResource("serviceaccounts")
	servicesResource   = corev1.SchemeGroupVersion.WithResource("services")
	bindingsResource   = rbacv1.SchemeGroupVersion.WithResource("rolebindings")
)

// part is one object of the installation that this process restores.
type part struct {
	// Wanted is the object as an installer applies it.
	Wanted *unstructured.Unstructured
	// Version is the resourceVersion found, empty when the object is missing.
	Version string
	// Kept is true when the object has every desired field, and Ending when it is being
	// deleted.
	Kept, Ending bool
}

// partsState is the input of decideParts.
type partsState struct {
	// ClusterManager owns the parts.
	ClusterManager *operatorv1.ClusterManager
	// Parts in the order to apply.
	Parts []part
}

// decideParts applies what is missing or changed, unless the ClusterManager or the part's
// namespace is being deleted. It is a pure function.
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

// location is the resource and the namespace of parts of one kind.
type location struct {
	resource  schema.GroupVersionResource
	namespace string
}

func locationOf(u *unstructured.Unstructured) location {
	return location{reconcile.ResourceOf(u.GroupVersionKind()), u.GetNamespace()}
}

// partsOf returns the objects of an installation that the process may restore: its Services,
// then the namespace of its certificates, its role bindings there, and the ServiceAccount of
// the add-on manager. Objects that depend on options of the installer are not included.
func partsOf(c Config) ([]*unstructured.Unstructured, error) {
	objects, err := hub.Objects(c.installed())
	if err != nil {
		return nil, err
	}
	var ordered []*unstructured.Unstructured
	// The namespace and the role bindings in it come before the objects that need them.
	for _, p := range []location{
		{servicesResource, hub.Namespace}, {namespacesResource, ""}, {bindingsResource, hub.ComponentNamespace},
		{accountsResource, hub.ComponentNamespace}, {servicesResource, hub.ComponentNamespace},
	} {
		for _, u := range objects {
			if locationOf(u) == p && (p.namespace != "" || u.GetName() == hub.ComponentNamespace) {
				ordered = append(ordered, u)
			}
		}
	}
	return ordered, nil
}

// parts restores the objects of the installation that this process, its admission and its
// permissions need. It is a separate loop, because the collections of the other one cannot be
// read before the permissions exist.
type parts struct {
	collections *Collections
	objects     []*unstructured.Unstructured
	watches     map[location]*watch.Collection[part]
	exec        *reconcile.Executor
	queue       *reconcile.Queue
	// outcome is why parts cannot be restored.
	outcome outcome
}

func newParts(config Config, collections *Collections, log logr.Logger) (*parts, error) {
	objects, err := partsOf(config)
	if err != nil {
		return nil, err
	}
	p := &parts{
		collections: collections, objects: objects, exec: reconcile.NewExecutor(config.Client, partsName, config.Clock), queue: reconcile.NewQueue(partsName),
	}
	wanted := map[location]map[string]*unstructured.Unstructured{}
	for _, u := range objects {
		at := locationOf(u)
		if wanted[at] == nil {
			wanted[at] = map[string]*unstructured.Unstructured{}
		}
		wanted[at][u.GetName()] = u
	}
	p.watches = watchParts(config.Client, log, wanted)
	return p, nil
}

// onChange calls f when any of the parts changes.
func (p *parts) onChange(f func()) {
	for _, w := range p.watches {
		w.OnChange(func(reconcile.Key) { f() })
	}
}

func (p *parts) list() []followed {
	var out []followed
	for _, w := range p.watches {
		out = append(out, w)
	}
	return out
}

func (p *parts) wake() { p.queue.Add(reconcile.Key{Name: hub.Name}) }

// watchParts watches the desired objects: a single object by its name, several by their
// label.
func watchParts(client dynamic.Interface, log logr.Logger, wanted map[location]map[string]*unstructured.Unstructured) map[location]*watch.Collection[part] {
	out := map[location]*watch.Collection[part]{}
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

// keepPart compares the live object with the desired one, which is nil for objects that are
// not parts.
func keepPart(live, wanted *unstructured.Unstructured) part {
	p := part{Version: live.GetResourceVersion(), Ending: live.GetDeletionTimestamp() != nil}
	if wanted == nil {
		return p
	}
	p.Kept = true
	for key, value := range wanted.Object {
		// The items of a list have neither of them.
		if key != "apiVersion" && key != "kind" {
			p.Kept = p.Kept && covers(live.Object[key], value)
		}
	}
	return p
}

func (p *parts) runs() []func(context.Context) error {
	return append(runsOf(p.list()), p.loop)
}

func (p *parts) loop(ctx context.Context) error {
	waits := []func(context.Context) error{p.collections.managers.WaitSynced}
	for _, w := range p.watches {
		waits = append(waits, w.WaitSynced)
	}
	for _, synced := range waits {
		if err := synced(ctx); err != nil {
			return ignoreStopped(ctx, err)
		}
	}
	p.wake()
	return reconcile.Loop{Name: partsName, Reconcile: p.reconcile}.Run(ctx, p.queue)
}

// reconcile restores what is missing or changed.
func (p *parts) reconcile(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
	cm, ok := p.collections.managers.Get(key)
	if !ok {
		return reconcile.Result{}, nil
	}
	s := partsState{ClusterManager: cm.ClusterManager}
	for _, u := range p.objects {
		found, _ := p.watches[locationOf(u)].Get(reconcile.Key{Namespace: u.GetNamespace(), Name: u.GetName()})
		found.Wanted = u.DeepCopy()
		s.Parts = append(s.Parts, found)
	}
	result, err := p.exec.Execute(ctx, cm.ClusterManager, decideParts(s))
	if err != nil {
		err = fault{fmt.Errorf("restoring parts of the installation: %w", err), operatorv1.ReasonHubResourceApplyFailed}
	}
	p.outcome.set(err)
	return result, err
}
