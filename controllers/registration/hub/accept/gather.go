// SPDX-License-Identifier: Apache-2.0

package accept

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub"
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
func (c *Controller) gather(ctx context.Context, name string) (s State, err error) {
	s = State{Name: name, AutoAccept: c.config.AutoAccept, Labels: c.config.Labels, Now: c.config.Clock.Now()}
	if s.Cluster, err = hub.FindCluster(ctx, c.reader, name); err != nil {
		return s, err
	}
	var errs []error
	read := func(kind schema.GroupVersionKind, namespace, name string) Found {
		found, err := c.readFound(ctx, kind, namespace, name)
		errs = append(errs, err)
		return found
	}
	role := clusterv1.RolePrefixManagedCluster + name
	s.Rights = Rights{
		Role:         read(ClusterRoleKind, "", role),
		Binding:      read(ClusterRoleBindingKind, "", role),
		Registration: read(RoleBindingKind, name, role+clusterv1.RoleBindingSuffixRegistration),
		Work:         read(RoleBindingKind, name, role+clusterv1.RoleBindingSuffixWork),
	}
	s.Shared = map[string]Found{}
	for _, shared := range []string{clusterv1.RoleRegistration, clusterv1.RoleWork} {
		s.Shared[shared] = read(ClusterRoleKind, "", shared)
	}
	s.Namespace = read(NamespaceKind, "", name)
	if err = errors.Join(errs...); err == nil {
		err = c.readCounts(ctx, &s)
	}
	return s, err
}

// readFound reads the metadata of one object.
func (c *Controller) readFound(ctx context.Context, kind schema.GroupVersionKind, namespace, name string) (Found, error) {
	o := manager.Metadata(kind)
	err := c.reader.Get(ctx, reconcile.Key{Namespace: namespace, Name: name}, o, manager.NotCopied)
	object := kind.Kind + " " + namespace + "/" + name
	if apierrors.IsNotFound(err) {
		c.sight.Forget(object)
		return Found{}, nil
	}
	if err != nil {
		return Found{}, fmt.Errorf("reading %s %s: %w", kind.Kind, name, err)
	}
	return Found{
		Exists: true, UID: o.UID, Version: o.ResourceVersion, Labels: o.Labels,
		Intent: o.Annotations[clusterv1.AnnotationIntent], Shared: o.Annotations[manager.SharedAnnotation] != "" || !c.sight.Unchanged(object, o.ResourceVersion),
		Finalizers: o.Finalizers, Deleting: o.DeletionTimestamp != nil,
	}, nil
}

// readCounts counts the works and, to decide on the rights of a cluster being deleted, its
// add-ons and the other clusters.
func (c *Controller) readCounts(ctx context.Context, s *State) (err error) {
	s.Lease = c.config.Leases.Has(s.Name)
	r := s.Rights
	works, harmless := manager.MetadataList(manifestWorkKind), !r.Work.Exists || s.keepsAllRights()
	if s.Works, err = c.count(ctx, s, works, manager.Metadata(manifestWorkKind), harmless); err != nil {
		return fmt.Errorf("counting manifestworks of %s: %w", s.Name, err)
	}
	if s.Cluster != nil && s.Cluster.DeletionTimestamp == nil {
		return nil
	}
	harmless = !s.keepsRights() || !(r.Role.Exists || r.Binding.Exists || r.Registration.Exists)
	if s.AddOns, err = c.count(ctx, s, &addonhealth.AddOnList{}, &addonhealth.AddOn{}, harmless); err != nil {
		return fmt.Errorf("counting add-ons of %s: %w", s.Name, err)
	}
	clusters := &clusterv1.ManagedClusterList{}
	if err := c.reader.List(ctx, clusters, manager.NotCopied, manager.AtMost(2)); err != nil {
		return fmt.Errorf("counting managedclusters: %w", err)
	}
	s.Last = len(clusters.Items) == 0 || (len(clusters.Items) == 1 && clusters.Items[0].Name == s.Name)
	return nil
}

// count counts the objects of a kind in the namespace of the cluster. Unless it is harmless,
// finding none takes rights away, so a cache that has not seen them yet must not be trusted: s
// records that it is behind, or why that is unknown, so that only what depends on the count
// waits.
func (c *Controller) count(ctx context.Context, s *State, list manager.List, example reconcile.Object, harmless bool) (int, error) {
	count := func() (int, error) {
		err := c.reader.List(ctx, list, manager.InNamespace(s.Name), manager.NotCopied)
		return apimeta.LenList(list), err
	}
	n, err := count()
	if err != nil || n > 0 || harmless {
		return n, err
	}
	complete, err := c.complete(ctx, example, s.Name)
	if err == nil && complete {
		return count()
	}
	s.Behind, s.Fault = true, errors.Join(s.Fault, err)
	return 0, nil
}
