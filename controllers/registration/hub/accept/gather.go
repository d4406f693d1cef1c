// SPDX-License-Identifier: Apache-2.0

package accept

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub/addonhealth"
	"github.com/kubectl-ocm/kubectl-ocm/internal/manager"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// The kinds whose metadata this loop watches.
var (
	NamespaceKind          = corev1.SchemeGroupVersion.WithKind("Namespace")
	ClusterRoleKind        = rbacv1.SchemeGroupVersion.WithKind("ClusterRole")
	ClusterRoleBindingKind = rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding")
	RoleBindingKind        = rbacv1.SchemeGroupVersion.WithKind("RoleBinding")
	manifestWorkKind       = workv1.GroupVersion.WithKind("ManifestWork")
)

// gather reads the state of one cluster from the caches.
func (c *Controller) gather(ctx context.Context, key reconcile.Key) (State, error) {
	s := State{Name: key.Name, AutoAccept: c.config.AutoAccept, Labels: c.config.Labels, Now: c.config.Clock.Now(), Shared: map[string]Found{}}
	mc := &clusterv1.ManagedCluster{}
	err := c.config.Reader.Get(ctx, key, mc)
	if err == nil {
		s.Cluster = mc
	} else if !apierrors.IsNotFound(err) {
		return s, fmt.Errorf("reading managedcluster %s: %w", key.Name, err)
	}
	role := clusterv1.RolePrefixManagedCluster + key.Name
	for _, read := range []struct {
		kind      schema.GroupVersionKind
		namespace string
		name      string
		into      *Found
	}{
		{ClusterRoleKind, "", role, &s.Rights.Role},
		{ClusterRoleBindingKind, "", role, &s.Rights.Binding},
		{RoleBindingKind, key.Name, role + clusterv1.RoleBindingSuffixRegistration, &s.Rights.Registration},
		{RoleBindingKind, key.Name, role + clusterv1.RoleBindingSuffixWork, &s.Rights.Work},
	} {
		found, _, err := c.readFound(ctx, read.kind, read.namespace, read.name)
		if err != nil {
			return s, err
		}
		*read.into = found
	}
	for _, shared := range []string{clusterv1.RoleRegistration, clusterv1.RoleWork} {
		if s.Shared[shared], _, err = c.readFound(ctx, ClusterRoleKind, "", shared); err != nil {
			return s, err
		}
	}
	found, labels, err := c.readFound(ctx, NamespaceKind, "", key.Name)
	if err != nil {
		return s, err
	}
	s.Namespace = Namespace{Found: found, Owner: labels[clusterv1.LabelClusterName], Labels: labels}
	return s, c.readCounts(ctx, &s)
}

// readFound reads the metadata of one object.
func (c *Controller) readFound(ctx context.Context, kind schema.GroupVersionKind, namespace, name string) (Found, map[string]string, error) {
	o := manager.Metadata(kind)
	err := c.config.Reader.Get(ctx, reconcile.Key{Namespace: namespace, Name: name}, o, manager.NotCopied)
	object := kind.Kind + " " + namespace + "/" + name
	if apierrors.IsNotFound(err) {
		c.sight.Forget(object)
		return Found{}, nil, nil
	}
	if err != nil {
		return Found{}, nil, fmt.Errorf("reading %s %s: %w", kind.Kind, name, err)
	}
	return Found{
		Exists: true, UID: o.UID, Version: o.ResourceVersion,
		Intent: o.Annotations[clusterv1.AnnotationIntent], Shared: o.Annotations[manager.SharedAnnotation] != "" || !c.sight.Unchanged(object, o.ResourceVersion),
		Finalizers: o.Finalizers, Deleting: o.DeletionTimestamp != nil,
	}, o.Labels, nil
}

// readCounts fills in the counts.
func (c *Controller) readCounts(ctx context.Context, s *State) error {
	s.Lease = c.config.Leases.Has(s.Name)
	if err := c.countWorks(ctx, s); err != nil {
		return err
	}
	if s.Cluster != nil && s.Cluster.DeletionTimestamp == nil {
		return nil
	}
	if err := c.countAddOns(ctx, s); err != nil {
		return err
	}
	clusters := &clusterv1.ManagedClusterList{}
	if err := c.config.Reader.List(ctx, clusters, manager.NotCopied, manager.AtMost(2)); err != nil {
		return fmt.Errorf("counting managedclusters: %w", err)
	}
	s.Last = len(clusters.Items) == 0 || (len(clusters.Items) == 1 && clusters.Items[0].Name == s.Name)
	return nil
}

// countWorks counts the works. Finding none releases their binding, so a cache that has not
// seen them yet must not be trusted.
func (c *Controller) countWorks(ctx context.Context, s *State) error {
	works := manager.MetadataList(manifestWorkKind)
	count := func() error {
		if err := c.config.Reader.List(ctx, works, manager.InNamespace(s.Name), manager.NotCopied); err != nil {
			return fmt.Errorf("counting manifestworks of %s: %w", s.Name, err)
		}
		s.Works = len(works.Items)
		return nil
	}
	if err := count(); err != nil || s.Works > 0 || !s.Rights.Work.Exists || s.keepsAllRights() {
		return err
	}
	return c.recount(ctx, s, manager.Metadata(manifestWorkKind), count)
}

// countAddOns counts the add-ons of a cluster being deleted, to decide on its rights.
func (c *Controller) countAddOns(ctx context.Context, s *State) error {
	addons := &addonhealth.AddOnList{}
	count := func() error {
		if err := c.config.Reader.List(ctx, addons, manager.InNamespace(s.Name), manager.NotCopied); err != nil {
			return fmt.Errorf("counting add-ons of %s: %w", s.Name, err)
		}
		s.AddOns = len(addons.Items)
		return nil
	}
	r := s.Rights
	if err := count(); err != nil || s.AddOns > 0 || !s.keepsRights() || !(r.Role.Exists || r.Binding.Exists || r.Registration.Exists) {
		return err
	}
	return c.recount(ctx, s, &addonhealth.AddOn{}, count)
}

// recount counts again if the cache has caught up; otherwise it records that it has not, or
// why that is unknown, so that only what depends on the count waits.
func (c *Controller) recount(ctx context.Context, s *State, example reconcile.Object, count func() error) error {
	complete, err := c.complete(ctx, example, s.Name)
	if err == nil && complete {
		return count()
	}
	s.Behind, s.Fault = true, errors.Join(s.Fault, err)
	return nil
}

// placeholder stands in for a ManagedCluster that is gone.
func placeholder(name string) *clusterv1.ManagedCluster {
	return &clusterv1.ManagedCluster{
		TypeMeta:   metav1.TypeMeta{APIVersion: clusterv1.GroupVersion.String(), Kind: "ManagedCluster"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
	}
}
