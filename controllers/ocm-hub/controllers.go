// SPDX-License-Identifier: Apache-2.0

package main

import (
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/addon"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/addon/selection"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/operator/clustermanager"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/placement"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub/accept"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub/addonhealth"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub/approve"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub/clusterset"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub/gc"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub/importer"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub/lease"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub/managednamespace"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub/membership"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub/profile"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub/setbinding"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub/taint"
	workgc "github.com/kubectl-ocm/kubectl-ocm/controllers/work/hub/gc"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/hub/replicaset"
	"github.com/kubectl-ocm/kubectl-ocm/internal/manager"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1alpha1"
	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
	clusterv1beta2 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta2"
	multiclusterv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/multicluster/v1alpha1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	workv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1alpha1"
)

// register adds all loops of the hub, depending on their feature gates. This is the only list
// of them. addOnManager is a client that impersonates the add-on manager.
func (l *loops) register(m *manager.Manager, f clustermanager.Features, arrivals *lease.Arrivals, addOnManager dynamic.Interface) {
	lease.Register(m, lease.Config{Client: l.client, REST: l.REST, Clock: l.Clock, Arrivals: arrivals})
	accept.Register(m, accept.Config{Client: l.client, Clock: l.Clock, Leases: arrivals, AutoAccept: f.AutoApprove, Labels: f.Labels})
	approve.Register(m, approve.Config{Client: l.client, Clock: l.Clock, Arrivals: arrivals, AutoApprove: f.AutoApprove})
	taint.Register(m, taint.Config{Client: l.client, Clock: l.Clock})
	index := membership.New(m)
	clusterset.Register(m, clusterset.Config{Client: l.client, Clock: l.Clock, Index: index, Own: f.DefaultClusterSet})
	setbinding.Register(m, setbinding.Config{Client: l.client, Clock: l.Clock, Index: index})
	managednamespace.Register(m, managednamespace.Config{Client: l.client, Clock: l.Clock, Index: index})
	switch {
	case f.ProfilesServed && f.ClusterProfile:
		profile.Register(m, profile.Config{Client: l.client, Clock: l.Clock, Index: index})
	case f.ProfilesServed:
		profile.Remove(m, l.client)
	}
	if f.ClusterImporter {
		importer.Register(m, importer.Config{Client: l.client, Clock: l.Clock, Renderers: f.Renderers, Image: l.AgentImage, Log: l.Log})
	}
	gc.Register(m, gc.Config{Client: l.client, Clock: l.Clock, Clean: f.ResourceCleanup, Order: l.Cleanup})
	placement.Register(m, placement.Config{Client: l.client, Clock: l.Clock, Metrics: l.placements})
	addonhealth.Register(m, addonhealth.Config{Client: l.client, Clock: l.Clock})
	if f.AddOnManagement {
		addon.Register(m, addon.Config{Client: l.client, Manager: addOnManager, Clock: l.Clock})
	}
	if f.ManifestWorkReplicaSet {
		replicaset.Register(m, replicaset.Config{Client: l.client, Clock: l.Clock})
	}
	if f.CleanUpCompletedManifestWork {
		workgc.Register(m, workgc.Config{Client: l.client, Clock: l.Clock})
	}
}

// scheme returns a scheme with every kind that is cached in full.
func scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		certificatesv1.AddToScheme, corev1.AddToScheme, clusterv1.AddToScheme, clusterv1alpha1.AddToScheme, clusterv1beta1.AddToScheme, clusterv1beta2.AddToScheme,
		workv1alpha1.AddToScheme, multiclusterv1alpha1.AddToScheme, addonhealth.AddToScheme, selection.AddToScheme,
	} {
		utilruntime.Must(add(s))
	}
	return s
}

// kinds limits what is cached of each kind: RBAC objects and certificate requests of
// clusters, not those of add-ons; Secrets of join tokens, without their secret data; only
// metadata of objects that are just counted or compared. Kinds of which a hub holds thousands
// are packed.
func kinds() []manager.Kind {
	selector, err := labels.Parse(clusterv1.LabelClusterName + ",!" + clusterv1.LabelAddOnName)
	utilruntime.Must(err)
	tokens, err := labels.Parse(clusterv1.LabelJoinToken)
	utilruntime.Must(err)
	out := []manager.Kind{
		{Example: &clusterv1.ManagedCluster{}, Transform: trimCluster, Packed: true},
		{Example: &addonhealth.AddOn{}, Transform: addonhealth.Trim, Packed: true},
		{Example: &certificatesv1.CertificateSigningRequest{}, Label: selector, Transform: approve.TrimRequest},
		{Example: &corev1.Secret{}, Namespace: operatorv1.NamespaceOperator, Label: tokens, Transform: approve.TrimToken},
		{Example: manager.Metadata(accept.NamespaceKind), Transform: manager.TrimMetadata("", clusterv1.AnnotationIntent)},
		{Example: manager.Metadata(gc.ManifestWorkKind), Transform: manager.TrimMetadata("", clusterv1.AnnotationCleanupPriority)},
	}
	for _, kind := range []schema.GroupVersionKind{accept.ClusterRoleKind, accept.ClusterRoleBindingKind, accept.RoleBindingKind} {
		out = append(out, manager.Kind{
			Example: manager.Metadata(kind), Label: selector, Transform: manager.TrimMetadata(accept.Manager, clusterv1.AnnotationIntent),
		})
	}
	return out
}
