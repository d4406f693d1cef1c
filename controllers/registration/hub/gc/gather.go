// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/pager"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub/accept"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub/addonhealth"
	"github.com/kubectl-ocm/kubectl-ocm/internal/manager"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

var clusters = clusterv1.GroupVersion.WithResource("managedclusters")

// gather reads the state of one cluster: from the caches and, for resources removed only by
// configuration, from the API server while the cluster is being deleted. known is what was
// recorded of the cluster of that name that is being deleted or gone.
func (c *Controller) gather(ctx context.Context, name string, known farewell) (s State, err error) {
	s = State{Name: name, Clean: c.config.Clean, Now: c.config.Clock.Now()}
	if s.Cluster, err = hub.FindCluster(ctx, c.reader, name); err != nil || (s.Cluster != nil && s.Cluster.DeletionTimestamp == nil) {
		return s, err
	}
	ns, err := hub.Find(ctx, c.reader, reconcile.Key{Name: name}, manager.Metadata(accept.NamespaceKind), manager.NotCopied)
	if err != nil {
		return s, err
	}
	s.Owned = known.gone && ns != nil && ns.Labels[clusterv1.LabelClusterName] == name
	if !s.Clean || (s.Cluster == nil && !s.Owned) {
		return s, nil
	}
	if s.Cluster != nil {
		s.Fault = c.readRemaining(ctx, &s, known)
	} else {
		s.Fault = c.readLeftBehind(ctx, &s, known)
	}
	if next, _ := nextStep(s); len(next.Writes) == 0 && (s.isClear() || !known.clear) {
		return s, nil
	}
	err = c.confirm(ctx, &s)
	return s, err
}

// readRemaining reads what is left of a cluster being deleted. Before its first result is
// trusted, whether or not anything is left, the caches must be as new as the API server.
func (c *Controller) readRemaining(ctx context.Context, s *State, known farewell) (err error) {
	if s.Groups, err = c.readGroups(ctx, s.Name, nil); err != nil {
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
	s.Groups, err = c.readGroups(ctx, s.Name, nil)
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
				return err
			}
			for _, item := range items {
				left[item.UID] = true
			}
		}
		c.farewells.recordLeft(s.Name, known.cluster, left)
	}
	s.Groups, err = c.readGroups(ctx, s.Name, left)
	return err
}

// readGroups reads the objects to remove, or those of them that are among left, up to the
// first resource with any: the rest waits for those.
func (c *Controller) readGroups(ctx context.Context, cluster string, left map[types.UID]bool) ([]Group, error) {
	var out []Group
	for _, resource := range c.config.Order {
		items, err := c.listItems(ctx, resource, cluster)
		if err != nil {
			return out, err
		}
		items = slices.DeleteFunc(items, func(i Item) bool { return left != nil && !left[i.UID] })
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
func (c *Controller) listItems(ctx context.Context, resource schema.GroupVersionResource, cluster string) (out []Item, err error) {
	add := func(o runtime.Object) error {
		out = append(out, itemOf(o.(metav1.Object)))
		return nil
	}
	switch resource {
	case addons:
		err = c.listCached(ctx, &addonhealth.AddOnList{}, cluster, add)
	case works:
		err = c.listCached(ctx, manager.MetadataList(ManifestWorkKind), cluster, add)
	default:
		err = pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return c.config.Client.Resource(resource).Namespace(cluster).List(ctx, o)
		}).EachListItem(ctx, metav1.ListOptions{}, add)
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("listing %s of cluster %s: %w", resource.Resource, cluster, err)
	}
	return out, nil
}

func (c *Controller) listCached(ctx context.Context, into manager.List, cluster string, add func(runtime.Object) error) error {
	if err := c.reader.List(ctx, into, manager.InNamespace(cluster), manager.NotCopied); err != nil {
		return err
	}
	return apimeta.EachListItem(into, add)
}

func itemOf(o metav1.Object) Item {
	return Item{
		Name: o.GetName(), UID: o.GetUID(), Priority: o.GetAnnotations()[clusterv1.AnnotationCleanupPriority], Deleting: o.GetDeletionTimestamp() != nil,
	}
}
