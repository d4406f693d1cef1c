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

// pageSize is the page size of live lists.
const pageSize = 500

// gather reads the state of one cluster: from the caches and, for resources removed only by
// configuration, from the API server while the cluster is being deleted. known is what was
// recorded of the cluster of that name that is being deleted or gone.
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
		s.Fault = c.readRemaining(ctx, &s, known)
	} else {
		s.Fault = c.readLeftBehind(ctx, &s, known)
	}
	if len(nextStep(s).deletes) == 0 && (s.isClear() || !known.clear) {
		return s, nil
	}
	return s, c.confirm(ctx, &s)
}

// readRemaining reads what is left of a cluster being deleted. Before its first result is
// trusted, whether or not anything is left, the caches must be as new as the API server.
func (c *Controller) readRemaining(ctx context.Context, s *State, known farewell) (err error) {
	if s.Groups, err = c.readGroups(ctx, s.Name, anyItem); err != nil {
		return err
	}
	if !isEmpty(s.Groups) && known.shown && known.cluster == s.Cluster.UID {
		return nil
	}
	if s.Behind, err = c.isBehind(ctx, s.Name); s.Behind || err != nil {
		return err
	}
	c.farewells.update(s.Name, s.Cluster.UID, func(f *farewell) { f.shown = true })
	// Objects the first read missed are in the cache now.
	s.Groups, err = c.readGroups(ctx, s.Name, anyItem)
	return err
}

// readLeftBehind reads what is left of a cluster that is gone, out of the objects that existed
// when it was first checked. Objects created in the namespace after that belong to the next
// cluster of that name, so the result does not depend on how soon this loop checks again.
func (c *Controller) readLeftBehind(ctx context.Context, s *State, known farewell) (err error) {
	left := known.left
	if left == nil {
		if s.Behind, err = c.isBehind(ctx, s.Name); s.Behind || err != nil {
			return err
		}
		left = map[types.UID]bool{}
		for _, resource := range c.config.Order {
			items, err := c.listItems(ctx, resource, s.Name)
			if err != nil {
				return fmt.Errorf("listing %s of cluster %s: %w", resource.Resource, s.Name, err)
			}
			for _, item := range items {
				left[item.UID] = true
			}
		}
		c.farewells.recordLeft(s.Name, known.cluster, left)
	}
	s.Groups, err = c.readGroups(ctx, s.Name, func(i Item) bool { return left[i.UID] })
	return err
}

// anyItem accepts every object of a namespace.
func anyItem(Item) bool { return true }

// readGroups reads the objects to remove that count, up to the first resource with any left: the
// rest waits for those.
func (c *Controller) readGroups(ctx context.Context, cluster string, counts func(Item) bool) ([]Group, error) {
	var out []Group
	for _, resource := range c.config.Order {
		items, err := c.listItems(ctx, resource, cluster)
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

// isBehind reports whether the namespace of a cluster holds objects the caches do not show yet.
// It is checked when the deletion begins, or the order of deletion would be that in which the
// watches deliver; and when nothing is left, or what was created last would stay behind.
func (c *Controller) isBehind(ctx context.Context, cluster string) (bool, error) {
	for _, example := range []reconcile.Object{&addonhealth.AddOn{}, manager.Metadata(ManifestWorkKind)} {
		if complete, err := c.complete(ctx, example, cluster); err != nil || !complete {
			return err == nil, err
		}
	}
	return false, nil
}

// confirm asks the API server whether the cluster is the one being deleted, or is gone, as
// the caches say. This is done before anything is deleted, and before the record that nothing
// is left is withdrawn: objects of the next cluster of that name may be seen before that
// cluster is, or before this one is seen to be gone. What is confirmed was read before, so it
// existed while the cluster did.
func (c *Controller) confirm(ctx context.Context, s *State) error {
	live, err := c.config.Client.Resource(clusters).Get(ctx, s.Name, metav1.GetOptions{})
	switch {
	case reconcile.IgnoreNotFound(err) != nil:
		return fmt.Errorf("reading managedcluster %s before removing what belongs to it: %w", s.Name, err)
	case err == nil && s.Cluster != nil && live.GetUID() == s.Cluster.UID, err != nil && s.Cluster == nil:
		return nil
	}
	// The cluster's own event is on its way, and its reconcile decides.
	s.Cluster, s.Owned, s.Groups = nil, false, nil
	return nil
}

// listItems lists the objects of one resource; a resource unknown to the API server has none.
func (c *Controller) listItems(ctx context.Context, resource schema.GroupVersionResource, namespace string) ([]Item, error) {
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
