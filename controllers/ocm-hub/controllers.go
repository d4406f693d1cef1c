// SPDX-License-Identifier: Apache-2.0

package main

import (
	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/operator/clustermanager"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub/accept"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub/approve"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub/clusterset"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub/gc"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub/lease"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub/taint"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1beta2 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta2"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/manager"
)

// registration is what the loops are made of.
type registration struct {
	REST     *rest.Config
	Client   dynamic.Interface
	Clock    clock.WithTicker
	Arrivals *lease.Arrivals
	Features clustermanager.Features
}

// register is THE list of all loops of the hub, with their gates.
func register(m *manager.Manager, r registration) {
	lease.Register(m, lease.Config{Client: r.Client, REST: r.REST, Clock: r.Clock, Arrivals: r.Arrivals})
	accept.Register(m, accept.Config{Client: r.Client, Clock: r.Clock, Leases: r.Arrivals, AutoAccept: r.Features.AutoApprove})
	approve.Register(m, approve.Config{Client: r.Client, Clock: r.Clock, Arrivals: r.Arrivals, AutoApprove: r.Features.AutoApprove})
	taint.Register(m, taint.Config{Client: r.Client, Clock: r.Clock})
	clusterset.Register(m, clusterset.Config{Client: r.Client, Clock: r.Clock, Own: r.Features.DefaultClusterSet})
	gc.Register(m, gc.Config{Client: r.Client, Clock: r.Clock, Clean: r.Features.ResourceCleanup})
}

// scheme knows every kind that is watched whole.
func scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{certificatesv1.AddToScheme, clusterv1.AddToScheme, clusterv1beta2.AddToScheme} {
		utilruntime.Must(add(s))
	}
	return s
}

// kinds limits what is kept of each kind: of RBAC objects and certificate
// requests those of clusters, and not those of add-ons; of objects that are only
// counted or compared, metadata.
func kinds() map[client.Object]cache.ByObject {
	selector, err := labels.Parse(clusterv1.LabelClusterName + ",!" + clusterv1.LabelAddOnName)
	utilruntime.Must(err)
	rights := cache.ByObject{Label: selector, Transform: manager.TrimMetadata(accept.Manager, clusterv1.AnnotationIntent)}
	counted := cache.ByObject{Transform: manager.TrimMetadata("", clusterv1.AnnotationCleanupPriority)}
	return map[client.Object]cache.ByObject{
		&certificatesv1.CertificateSigningRequest{}:     {Label: selector, Transform: manager.Trim},
		manager.Metadata(accept.ClusterRoleKind):        rights,
		manager.Metadata(accept.ClusterRoleBindingKind): rights,
		manager.Metadata(accept.RoleBindingKind):        rights,
		manager.Metadata(accept.NamespaceKind):          {Transform: manager.TrimMetadata("")},
		manager.Metadata(gc.ManifestWorkKind):           counted,
		manager.Metadata(gc.AddOnKind):                  counted,
	}
}
