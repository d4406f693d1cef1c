// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"context"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/operator/shared"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/request"
	"github.com/kubectl-ocm/kubectl-ocm/internal/observe"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
)

var (
	namespacesResource = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	configMapsResource = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
)

// original is an object beside the agent of which add-ons get copies, and its copies.
type original struct {
	resource schema.GroupVersionResource
	name     string
	// template is what a copy has in it; nil while there is no original, and nothing to copy.
	template *unstructured.Unstructured
	// copies are the objects of this name in other namespaces, by namespace.
	copies map[string]duplicate
}

func pullSecret() original {
	return original{resource: request.Secrets, name: operatorv1.SecretImagePull}
}

func tlsProfile() original {
	return original{resource: configMapsResource, name: observe.ConfigMapProfile}
}

// duplicate is what is cached of a copy.
type duplicate struct {
	namespace, version string
	uid                types.UID
	// owner is the Klusterlet that made it; empty for one that somebody else made.
	owner string
}

func keepDuplicate(u *unstructured.Unstructured) (duplicate, bool) {
	return duplicate{u.GetNamespace(), u.GetResourceVersion(), u.GetUID(), u.GetLabels()[operatorv1.LabelCreatedByKlusterlet]}, u.GetDeletionTimestamp() == nil
}

// followed is a collection that is read while it is needed. Only the single worker of the loop
// uses it.
type followed[T any] struct {
	items *watch.Collection[T]
	// end ends it; nil while it is not read.
	end func()
}

func (f *followed[T]) follow(ctx context.Context, o watch.Options[T], wake func()) {
	if f.end != nil {
		return
	}
	f.items = watch.New(o)
	f.items.OnChange(func(reconcile.Key) { wake() })
	f.items.OnSynced(wake)
	f.end = shared.Follow(ctx, []shared.Collection{f.items})
}

func (f *followed[T]) leave() {
	if f.end != nil {
		f.end()
		f.end = nil
	}
}

// collection returns what is read now.
func (f *followed[T]) collection() []shared.Collection {
	if f.end == nil {
		return nil
	}
	return []shared.Collection{f.items}
}

// duplicates follows the copies of an original while there is one.
type duplicates struct {
	followed[duplicate]
	// gone is true once there is no original, and no copy of the agent's is left.
	gone bool
}

// gatherDuplicates reads the copies of an original. Without one, it looks once for what is left of
// them.
func (c *Controller) gatherDuplicates(ctx context.Context, d *duplicates, o *original) {
	o.copies = map[string]duplicate{}
	if o.template == nil {
		d.leave()
		c.gatherOldDuplicates(ctx, d, o)
		return
	}
	d.gone = false
	d.follow(ctx, watch.Options[duplicate]{
		Client: c.config.Spoke, Resource: o.resource, FieldSelector: "metadata.name=" + o.name, Log: c.config.Log, Keep: keepDuplicate,
	}, c.Wake)
	for _, one := range d.items.List() {
		o.copies[one.namespace] = one
	}
}

func (c *Controller) gatherOldDuplicates(ctx context.Context, d *duplicates, o *original) {
	if d.gone {
		return
	}
	list, err := c.config.Spoke.Resource(o.resource).List(ctx, metav1.ListOptions{LabelSelector: c.ownLabel(), FieldSelector: "metadata.name=" + o.name})
	if err != nil { // an agent without the right to read them has made none
		d.gone = apierrors.IsForbidden(err)
		return
	}
	for i := range list.Items {
		if one, keep := keepDuplicate(&list.Items[i]); keep {
			o.copies[one.namespace] = one
		}
	}
	d.gone = len(o.copies) == 0
}

// copies follows what add-ons need copies of, and where.
type copies struct {
	namespaces    followed[string]
	pull, profile duplicates
}

func (p *copies) leave() {
	p.namespaces.leave()
	p.pull.leave()
	p.profile.leave()
}

func (p *copies) collections() []shared.Collection {
	return slices.Concat(p.namespaces.collection(), p.pull.collection(), p.profile.collection())
}

// gatherCopies reads what the copies depend on.
func (c *Controller) gatherCopies(ctx context.Context, s *State) {
	if secret, found := c.secret(operatorv1.SecretImagePull); found {
		s.Pull.template = request.NewSecret(secret.Data)
		if secret.Type != "" {
			s.Pull.template.Object["type"] = secret.Type
		}
	}
	if limits, found := c.limits.read(); found {
		s.Profile.template = limits.template()
		s.ProfileProblem = limits.problem
	}
	p := &c.copies
	if s.SecretsKnown {
		c.gatherDuplicates(ctx, &p.pull, &s.Pull)
	}
	if c.limits.synced() {
		c.gatherDuplicates(ctx, &p.profile, &s.Profile)
	}
	if s.Pull.template == nil && s.Profile.template == nil {
		p.namespaces.leave()
		return
	}
	p.namespaces.follow(ctx, watch.Options[string]{
		Client: c.config.Spoke, Resource: namespacesResource, LabelSelector: operatorv1.LabelAddOnNamespace + "=true", Log: c.config.Log,
		Keep: func(u *unstructured.Unstructured) (string, bool) { return u.GetName(), u.GetDeletionTimestamp() == nil },
		Same: func(before, now string) bool { return before == now },
	}, c.Wake)
	s.AddOnNamespaces = p.namespaces.items.List()
}

// copyWrites copies an original to where add-ons run, and removes the copies when it is gone. An
// object of the name that somebody else made stays. The copies go with the Klusterlet.
func (s State) copyWrites(o original) []reconcile.Write {
	wanted := map[string]bool{}
	if o.template != nil && !s.Reading {
		for _, name := range s.AddOnNamespaces {
			wanted[name] = true
		}
		wanted[operatorv1.NamespaceAgentAddOn] = s.AddOnNamespace.ResourceVersion != "" && !s.AddOnNamespace.Leaving
	}
	delete(wanted, s.Namespace)
	var out []reconcile.Write
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if live, found := o.copies[name]; wanted[name] && (!found || live.owner != "" && s.Owner(live.owner) == s.Own) {
			out = append(out, reconcile.Apply{Object: s.copyOf(o, name), LiveVersion: live.version})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(o.copies)) {
		if live := o.copies[name]; o.template == nil && live.owner == s.Own {
			out = append(out, reconcile.Remove{Target: reconcile.Target{
				Resource: o.resource, Namespace: name, Name: o.name, UID: live.uid, Version: live.version,
			}})
		}
	}
	return out
}

func (s State) copyOf(o original, namespace string) *unstructured.Unstructured {
	u := o.template.DeepCopy()
	u.SetNamespace(namespace)
	u.SetName(o.name)
	u.SetLabels(map[string]string{operatorv1.LabelCreatedByKlusterlet: s.Own})
	u.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: operatorv1.GroupVersion.String(), Kind: "Klusterlet", Name: s.Klusterlet.Name, UID: s.Klusterlet.UID,
	}})
	return u
}
