// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/manager"
)

// Kinds that are removed with a cluster, in this order. Add-ons are handled at
// their storage version, so that nothing depends on conversion.
var (
	AddOnKind        = addonv1alpha1.GroupVersion.WithKind("ManagedClusterAddOn")
	ManifestWorkKind = workv1.GroupVersion.WithKind("ManifestWork")
	namespaceKind    = corev1.SchemeGroupVersion.WithKind("Namespace")

	order = []schema.GroupVersionKind{AddOnKind, ManifestWorkKind}
)

// gather reads the state of one cluster from the caches.
func (c *Controller) gather(ctx context.Context, name string) (State, error) {
	s := State{Name: name, Clean: c.clean, Now: c.clock.Now()}
	mc := &clusterv1.ManagedCluster{}
	err := c.reader.Get(ctx, client.ObjectKey{Name: name}, mc)
	if err == nil {
		s.Cluster = mc
	} else if !apierrors.IsNotFound(err) {
		return s, fmt.Errorf("reading managedcluster %s: %w", name, err)
	}
	if mc.DeletionTimestamp == nil && err == nil {
		return s, nil
	}
	ns := manager.Metadata(namespaceKind)
	err = c.reader.Get(ctx, client.ObjectKey{Name: name}, ns, manager.NotCopied)
	if client.IgnoreNotFound(err) != nil {
		return s, fmt.Errorf("reading namespace %s: %w", name, err)
	}
	s.Owned = c.isVanished(name) && err == nil && ns.Labels[clusterv1.LabelClusterName] == name
	for _, kind := range order {
		list := manager.MetadataList(kind)
		if err := c.reader.List(ctx, list, client.InNamespace(name), manager.NotCopied); err != nil {
			return s, fmt.Errorf("listing what cluster %s leaves: %w", name, err)
		}
		g := Group{Resource: reconcile.ResourceOf(kind)}
		for i := range list.Items {
			o := &list.Items[i]
			g.Items = append(g.Items, Item{
				Name: o.Name, UID: o.UID, Priority: o.Annotations[clusterv1.AnnotationCleanupPriority], Deleting: o.DeletionTimestamp != nil,
			})
		}
		s.Groups = append(s.Groups, g)
	}
	return s, nil
}
