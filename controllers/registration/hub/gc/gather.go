// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub/addonhealth"
	"github.com/kubectl-ocm/kubectl-ocm/internal/manager"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

var namespaceKind = corev1.SchemeGroupVersion.WithKind("Namespace")

var clusters = clusterv1.GroupVersion.WithResource("managedclusters")

// pageSize of live lists.
const pageSize = 500

// gather reads the state of one cluster: from the caches, and of resources that
// are removed with clusters by configuration alone, from the API server, while a
// cluster goes. known is what was noted of the cluster of the name that goes or
// went.
func (c *Controller) gather(ctx context.Context, name string, known farewell) (State, error) {
	s := State{Name: name, Clean: c.config.Clean, Now: c.config.Clock.Now()}
	mc := &clusterv1.ManagedCluster{}
	err := c.reader.Get(ctx, reconcile.Key{Name: name}, mc)
	if err == nil {
		s.Cluster = mc
	} else if !apierrors.IsNotFound(err) {
		return s, fmt.Errorf("reading managedcluster %s: %w", name, err)
	}
	if mc.DeletionTimestamp == nil && err == nil {
		return s, nil
	}
	ns := manager.Metadata(namespaceKind)
	err = c.reader.Get(ctx, reconcile.Key{Name: name}, ns, manager.NotCopied)
	if reconcile.IgnoreNotFound(err) != nil {
		return s, fmt.Errorf("reading namespace %s: %w", name, err)
	}
	s.Owned = known.gone && err == nil && ns.Labels[clusterv1.LabelClusterName] == name
	if !s.Clean || (s.Cluster == nil && !s.Owned) {
		return s, nil
	}
	if s.Cluster != nil {
		s.Fault = c.remaining(ctx, &s, known)
	} else {
		s.Fault = c.leftBehind(ctx, &s, known)
	}
	if len(next(s).deletes) == 0 && (s.clear() || !known.clear) {
		return s, nil
	}
	return s, c.confirm(ctx, &s)
}

// remaining reads what is left of a cluster that goes. Before it is believed for
// the first time that something, or nothing, is left, the caches have to be as new
// as the API server.
func (c *Controller) remaining(ctx context.Context, s *State, known farewell) (err error) {
	if s.Groups, err = c.groups(ctx, s.Name, anything); err != nil {
		return err
	}
	if !empty(s.Groups) && known.shown && known.cluster == s.Cluster.UID {
		return nil
	}
	if s.Behind, err = c.behind(ctx, s.Name); s.Behind || err != nil {
		return err
	}
	c.farewells.note(s.Name, s.Cluster.UID, func(f *farewell) { f.shown = true })
	// What the first read has missed is there now.
	s.Groups, err = c.groups(ctx, s.Name, anything)
	return err
}

// leftBehind reads what is left of a cluster that is gone: of that which was there
// when it was looked at first. Whoever makes something in the namespace after that
// makes it for the next cluster of the name, and how soon this loop looks again
// must not matter.
func (c *Controller) leftBehind(ctx context.Context, s *State, known farewell) (err error) {
	left := known.left
	if left == nil {
		if s.Behind, err = c.behind(ctx, s.Name); s.Behind || err != nil {
			return err
		}
		left = map[types.UID]bool{}
		for _, resource := range c.config.Order {
			items, err := c.items(ctx, resource, s.Name)
			if err != nil {
				return fmt.Errorf("listing %s of cluster %s: %w", resource.Resource, s.Name, err)
			}
			for _, item := range items {
				left[item.UID] = true
			}
		}
		c.farewells.leave(s.Name, known.cluster, left)
	}
	s.Groups, err = c.groups(ctx, s.Name, func(i Item) bool { return left[i.UID] })
	return err
}

// anything takes every object of a namespace.
func anything(Item) bool { return true }

// groups reads what there is to remove, of the objects that count, up to the first
// resource of which something is left: the rest waits for that.
func (c *Controller) groups(ctx context.Context, cluster string, counts func(Item) bool) ([]Group, error) {
	var out []Group
	for _, resource := range c.config.Order {
		items, err := c.items(ctx, resource, cluster)
		if err != nil {
			return out, fmt.Errorf("listing %s of cluster %s: %w", resource.Resource, cluster, err)
		}
		items = slices.DeleteFunc(items, func(i Item) bool { return !counts(i) })
		out = append(out, Group{Resource: resource, Items: items, Watched: resource == addons || resource == works})
		if len(items) > 0 {
			break
		}
	}
	return out, nil
}

// behind tells whether something is in the namespace of a cluster that the caches
// do not show yet. That is asked when the cluster begins to go, or the order of
// deletion would be that in which the watches tell; and when nothing is left, or
// what was made last would stay behind.
func (c *Controller) behind(ctx context.Context, cluster string) (bool, error) {
	for _, example := range []reconcile.Object{&addonhealth.AddOn{}, manager.Metadata(ManifestWorkKind)} {
		if complete, err := c.complete(ctx, example, cluster); err != nil || !complete {
			return err == nil, err
		}
	}
	return false, nil
}

// confirm asks the API server whether the cluster is the one that goes, or is gone,
// as the caches say; before anything is deleted, and before it is taken back that
// nothing is left of it. What belongs to the next one of the name may be seen before
// that cluster is, or before it is seen that this one went. What is confirmed was read
// before, and so was there while the cluster was.
func (c *Controller) confirm(ctx context.Context, s *State) error {
	live, err := c.config.Client.Resource(clusters).Get(ctx, s.Name, metav1.GetOptions{})
	switch {
	case reconcile.IgnoreNotFound(err) != nil:
		return fmt.Errorf("reading managedcluster %s before removing what belongs to it: %w", s.Name, err)
	case err == nil && s.Cluster != nil && live.GetUID() == s.Cluster.UID, err != nil && s.Cluster == nil:
		return nil
	}
	// Its own event comes, and is the next to decide.
	s.Cluster, s.Owned, s.Groups = nil, false, nil
	return nil
}

// items lists what there is of one resource; one that the API server does not
// know has none.
func (c *Controller) items(ctx context.Context, resource schema.GroupVersionResource, namespace string) ([]Item, error) {
	var out []Item
	switch resource {
	case addons:
		list := &addonhealth.AddOnList{}
		if err := c.reader.List(ctx, list, manager.InNamespace(namespace), manager.NotCopied); err != nil {
			return nil, err
		}
		for i := range list.Items {
			out = append(out, itemOf(&list.Items[i]))
		}
		return out, nil
	case works:
		list := manager.MetadataList(ManifestWorkKind)
		if err := c.reader.List(ctx, list, manager.InNamespace(namespace), manager.NotCopied); err != nil {
			return nil, err
		}
		for i := range list.Items {
			out = append(out, itemOf(&list.Items[i]))
		}
		return out, nil
	}
	options := metav1.ListOptions{Limit: pageSize}
	for {
		list, err := c.config.Client.Resource(resource).Namespace(namespace).List(ctx, options)
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			out = append(out, itemOf(&list.Items[i]))
		}
		if options.Continue = list.GetContinue(); options.Continue == "" {
			return out, nil
		}
	}
}

func itemOf(o metav1.Object) Item {
	return Item{
		Name: o.GetName(), UID: o.GetUID(), Priority: o.GetAnnotations()[clusterv1.AnnotationCleanupPriority], Deleting: o.GetDeletionTimestamp() != nil,
	}
}
