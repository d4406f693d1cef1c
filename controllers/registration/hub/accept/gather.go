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

// Kinds of which this loop watches metadata.
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
		found, _, err := c.find(ctx, read.kind, read.namespace, read.name)
		if err != nil {
			return s, err
		}
		*read.into = found
	}
	for _, shared := range []string{clusterv1.RoleRegistration, clusterv1.RoleWork} {
		if s.Shared[shared], _, err = c.find(ctx, ClusterRoleKind, "", shared); err != nil {
			return s, err
		}
	}
	found, labels, err := c.find(ctx, NamespaceKind, "", key.Name)
	if err != nil {
		return s, err
	}
	s.Namespace = Namespace{Found: found, Owner: labels[clusterv1.LabelClusterName], Labels: labels}
	return s, c.count(ctx, &s)
}

// find reads the metadata of one object.
func (c *Controller) find(ctx context.Context, kind schema.GroupVersionKind, namespace, name string) (Found, map[string]string, error) {
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

// count fills in what is only counted.
func (c *Controller) count(ctx context.Context, s *State) error {
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

// countWorks counts the works. That there is none lets their binding go, and must
// not be a cache's that has not seen them yet.
func (c *Controller) countWorks(ctx context.Context, s *State) error {
	works := manager.MetadataList(manifestWorkKind)
	count := func() error {
		if err := c.config.Reader.List(ctx, works, manager.InNamespace(s.Name), manager.NotCopied); err != nil {
			return fmt.Errorf("counting manifestworks of %s: %w", s.Name, err)
		}
		s.Works = len(works.Items)
		return nil
	}
	if err := count(); err != nil || s.Works > 0 || !s.Rights.Work.Exists || s.stays() {
		return err
	}
	return c.unseen(ctx, s, manager.Metadata(manifestWorkKind), count)
}

// countAddOns counts the add-ons of a cluster that goes, for its rights.
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
	return c.unseen(ctx, s, &addonhealth.AddOn{}, count)
}

// unseen counts again where the cache has caught up, and notes where it has not,
// or where that cannot be known: only what depends on it waits.
func (c *Controller) unseen(ctx context.Context, s *State, example reconcile.Object, count func() error) error {
	complete, err := c.complete(ctx, example, s.Name)
	if err == nil && complete {
		return count()
	}
	s.Behind, s.Fault = true, errors.Join(s.Fault, err)
	return nil
}

// placeholder stands for a ManagedCluster that is gone.
func placeholder(name string) *clusterv1.ManagedCluster {
	return &clusterv1.ManagedCluster{
		TypeMeta:   metav1.TypeMeta{APIVersion: clusterv1.GroupVersion.String(), Kind: "ManagedCluster"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
	}
}
