// SPDX-License-Identifier: Apache-2.0

package permission

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/permission/grant"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub/accept"
	"github.com/kubectl-ocm/kubectl-ocm/internal/manager"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	permissionv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/rbac/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// gather reads everything from caches but the work of a ClusterPermission that has none there:
// it may have been made by another controller, or belong to somebody else.
func (c *Controller) gather(ctx context.Context, cp *permissionv1alpha1.ClusterPermission) (State, error) {
	s := State{Permission: cp, Now: c.clock.Now(), Works: c.works.of(cp)}
	c.mu.Lock()
	s.Last = c.sent[reconcile.KeyOf(cp)]
	c.mu.Unlock()
	if cp.DeletionTimestamp != nil {
		return s, nil
	}
	cluster, err := hub.FindCluster(ctx, c.reader, cp.Namespace, manager.NotCopied)
	if err != nil {
		return s, err
	}
	s.Cluster, s.Leaving = cluster != nil, cluster != nil && cluster.DeletionTimestamp != nil
	s.Facts, s.Undecided = c.accounts.of(cp.Namespace)
	if s.Facts.Selected, err = c.selected(ctx, cp); err != nil {
		return s, err
	}
	if len(s.Works) > 0 || !s.Cluster {
		return s, nil
	}
	live, err := c.client.Resource(worksResource).Namespace(cp.Namespace).Get(ctx, workName(cp), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return s, nil
	case err != nil:
		return s, fmt.Errorf("reading manifestwork %s/%s: %w", cp.Namespace, workName(cp), err)
	}
	found, ok := keep(live)
	s.Taken = !ok || found.Owner != cp.UID
	if !s.Taken {
		s.Works = []Work{found}
	}
	return s, nil
}

// selected returns the hub's namespaces that the selectors of a ClusterPermission select, by
// the path of the selector.
func (c *Controller) selected(ctx context.Context, cp *permissionv1alpha1.ClusterPermission) (map[string][]string, error) {
	out := map[string][]string{}
	for at, wanted := range grant.Selecting(&cp.Spec) {
		selector, err := metav1.LabelSelectorAsSelector(wanted)
		if err != nil {
			continue // grant.Problems reports it
		}
		list := manager.MetadataList(accept.NamespaceKind)
		if err := c.reader.List(ctx, list, manager.NotCopied); err != nil {
			return nil, fmt.Errorf("listing the namespaces of the hub: %w", err)
		}
		for i := range list.Items {
			if selector.Matches(labels.Set(list.Items[i].Labels)) {
				out[at] = append(out[at], list.Items[i].Name)
			}
		}
		slices.Sort(out[at])
	}
	return out, nil
}

// accounts knows the ManagedServiceAccounts, whose API need not be served, and where the add-on
// that makes their ServiceAccounts runs on each cluster.
type accounts struct {
	all    *watch.Optional[reconcile.Key]
	addOns *watch.Collection[string]
	wake   func(cluster string)

	mu    sync.Mutex
	known bool
	// byCluster holds the names of the accounts.
	byCluster map[string]map[string]bool
}

func newAccounts(client dynamic.Interface, wake func(cluster string)) *accounts {
	a := &accounts{wake: wake}
	a.all = watch.NewOptional(watch.Options[reconcile.Key]{
		Client: client,
		Resource: schema.GroupVersionResource{
			Group: permissionv1alpha1.GroupManagedServiceAccount, Version: permissionv1alpha1.VersionManagedServiceAccount,
			Resource: permissionv1alpha1.ResourceManagedServiceAccounts,
		},
		Keep: func(u *unstructured.Unstructured) (reconcile.Key, bool) {
			return reconcile.KeyOf(u), u.GetDeletionTimestamp() == nil
		},
		Same: func(before, now reconcile.Key) bool { return before == now },
	})
	a.all.OnChange(a.changed)
	a.addOns = watch.New(watch.Options[string]{
		Client: client, Resource: addonv1alpha1.GroupVersion.WithResource("managedclusteraddons"),
		FieldSelector: "metadata.name=" + permissionv1alpha1.AddOnManagedServiceAccount,
		Keep:          keepNamespace, Same: func(before, now string) bool { return before == now },
	})
	a.addOns.OnChange(func(k reconcile.Key) { wake(k.Namespace) })
	return a
}

// keepNamespace returns where the agent of an add-on runs; empty when it has not said so.
func keepNamespace(u *unstructured.Unstructured) (string, bool) {
	addon, err := typed.FromUnstructured[addonv1alpha1.ManagedClusterAddOn](u)
	if err != nil || addon.DeletionTimestamp != nil {
		return "", false
	}
	if addon.Status.Namespace != "" {
		return addon.Status.Namespace, true
	}
	return addon.Spec.InstallNamespace, true
}

// Run keeps both up to date until ctx ends.
func (a *accounts) Run(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { _ = a.addOns.Run(ctx) })
	return a.all.Run(ctx)
}

// changed reads the accounts again, and wakes the clusters whose accounts changed.
func (a *accounts) changed() {
	items, known := a.all.List()
	if !known {
		items = nil
	}
	now := map[string]map[string]bool{}
	for _, key := range items {
		if now[key.Namespace] == nil {
			now[key.Namespace] = map[string]bool{}
		}
		now[key.Namespace][key.Name] = true
	}
	a.mu.Lock()
	before, appeared := a.byCluster, known && !a.known
	a.byCluster, a.known = now, known
	a.mu.Unlock()
	if appeared {
		a.wake("")
		return
	}
	for cluster := range maps.Keys(now) {
		if !maps.Equal(before[cluster], now[cluster]) {
			a.wake(cluster)
		}
	}
	for cluster := range maps.Keys(before) {
		if now[cluster] == nil {
			a.wake(cluster)
		}
	}
}

// of returns what is known of the accounts of a cluster; undecided is true while they have not
// been listed.
func (a *accounts) of(cluster string) (f grant.Facts, undecided bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f.Accounts = a.byCluster[cluster]
	f.AddOnNamespace, f.AddOn = a.addOns.Get(reconcile.Key{Namespace: cluster, Name: permissionv1alpha1.AddOnManagedServiceAccount})
	return f, !a.known
}
