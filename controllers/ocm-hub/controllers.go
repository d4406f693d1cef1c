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
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/addon"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/addon/selection"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/operator/clustermanager"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/placement"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub/accept"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub/addonhealth"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub/approve"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub/clusterset"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub/gc"
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

// registration is what the loops are created from.
type registration struct {
	REST   *rest.Config
	Client dynamic.Interface
	// AddOnManager is a client that impersonates the add-on manager.
	AddOnManager dynamic.Interface
	Clock        clock.WithTicker
	Arrivals     *lease.Arrivals
	Features     clustermanager.Features
	// Placements records how long placement decisions take.
	Placements *placement.Metrics
	// Cleanup lists the resources to remove with a cluster; empty means the default.
	Cleanup []schema.GroupVersionResource
}

// register adds all loops of the hub, depending on their feature gates. This is the only list
// of them.
func register(m *manager.Manager, r registration) {
	lease.Register(m, lease.Config{Client: r.Client, REST: r.REST, Clock: r.Clock, Arrivals: r.Arrivals})
	accept.Register(m, accept.Config{Client: r.Client, Clock: r.Clock, Leases: r.Arrivals, AutoAccept: r.Features.AutoApprove, Labels: r.Features.Labels})
	approve.Register(m, approve.Config{Client: r.Client, Clock: r.Clock, Arrivals: r.Arrivals, AutoApprove: r.Features.AutoApprove})
	taint.Register(m, taint.Config{Client: r.Client, Clock: r.Clock})
	index := membership.New(m)
	clusterset.Register(m, clusterset.Config{Client: r.Client, Clock: r.Clock, Index: index, Own: r.Features.DefaultClusterSet})
	setbinding.Register(m, setbinding.Config{Client: r.Client, Clock: r.Clock, Index: index})
	managednamespace.Register(m, managednamespace.Config{Client: r.Client, Clock: r.Clock, Index: index})
	switch f := r.Features; {
	case f.ProfilesServed && f.ClusterProfile:
		profile.Register(m, profile.Config{Client: r.Client, Clock: r.Clock, Index: index})
	case f.ProfilesServed:
		profile.Remove(m, r.Client)
	}
	gc.Register(m, gc.Config{Client: r.Client, Clock: r.Clock, Clean: r.Features.ResourceCleanup, Order: r.Cleanup})
	placement.Register(m, placement.Config{Client: r.Client, Clock: r.Clock, Metrics: r.Placements})
	addonhealth.Register(m, addonhealth.Config{Client: r.Client, Clock: r.Clock})
	if r.Features.AddOnManagement {
		addon.Register(m, addon.Config{Client: r.Client, Manager: r.AddOnManager, Clock: r.Clock})
	}
	if r.Features.ManifestWorkReplicaSet {
		replicaset.Register(m, replicaset.Config{Client: r.Client, Clock: r.Clock})
	}
	if r.Features.CleanUpCompletedManifestWork {
		workgc.Register(m, workgc.Config{Client: r.Client, Clock: r.Clock})
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
