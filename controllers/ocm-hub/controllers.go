// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"sync"

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
	"github.com/kubectl-ocm/kubectl-ocm/controllers/permission"
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
	"github.com/kubectl-ocm/kubectl-ocm/controllers/serviceaccount/credential"
	serviceaccount "github.com/kubectl-ocm/kubectl-ocm/controllers/serviceaccount/hub"
	workgc "github.com/kubectl-ocm/kubectl-ocm/controllers/work/hub/gc"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/work/hub/replicaset"
	"github.com/kubectl-ocm/kubectl-ocm/internal/manager"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1alpha1"
	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
	clusterv1beta2 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta2"
	multiclusterv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/multicluster/v1alpha1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	permissionv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/rbac/v1alpha1"
	workv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1alpha1"
)

// part is what one Deployment of the split layout runs; its name is that of the subcommand.
type part string

const (
	partRegistration part = "registration"
	partPlacement    part = "placement"
	partWork         part = "work"
	partAddOn        part = "addon"
)

// parts are all of them.
var parts = []part{partRegistration, partPlacement, partWork, partAddOn}

// register adds the loops of the parts that this process runs, depending on their feature
// gates. This is the only list of the hub's loops. addOnManager is a client that acts as the
// add-on manager.
func (l *loops) register(m *manager.Manager, f clustermanager.Features, arrivals *lease.Arrivals, addOnManager dynamic.Interface) {
	index := sync.OnceValue(func() *membership.Index { return membership.New(m) })
	for _, loop := range []struct {
		part     part
		on       bool
		register func()
	}{
		{partRegistration, true, func() {
			lease.Register(m, lease.Config{Client: l.client, REST: l.REST, Clock: l.Clock, Arrivals: arrivals})
		}},
		{partRegistration, true, func() {
			accept.Register(m, accept.Config{Client: l.client, Clock: l.Clock, Leases: arrivals, AutoAccept: f.AutoApprove, Labels: f.Labels})
		}},
		{partRegistration, true, func() {
			approve.Register(m, approve.Config{Client: l.client, Clock: l.Clock, Arrivals: arrivals, AutoApprove: f.AutoApprove})
		}},
		{partRegistration, true, func() { taint.Register(m, taint.Config{Client: l.client, Clock: l.Clock}) }},
		{partRegistration, true, func() {
			clusterset.Register(m, clusterset.Config{Client: l.client, Clock: l.Clock, Index: index(), Own: f.DefaultClusterSet})
		}},
		{partRegistration, true, func() { setbinding.Register(m, setbinding.Config{Client: l.client, Clock: l.Clock, Index: index()}) }},
		{partRegistration, true, func() {
			managednamespace.Register(m, managednamespace.Config{Client: l.client, Clock: l.Clock, Index: index()})
		}},
		{partRegistration, f.ProfilesServed && f.ClusterProfile, func() {
			profile.Register(m, profile.Config{Client: l.client, Clock: l.Clock, Index: index()})
		}},
		{partRegistration, f.ProfilesServed && !f.ClusterProfile, func() { profile.Remove(m, l.client) }},
		{partRegistration, f.ClusterImporter, func() {
			importer.Register(m, importer.Config{Client: l.client, Clock: l.Clock, Renderers: f.Renderers, Image: l.AgentImage, Log: l.Log})
		}},
		{partRegistration, true, func() {
			gc.Register(m, gc.Config{Client: l.client, Clock: l.Clock, Clean: f.ResourceCleanup, Order: l.Cleanup})
		}},
		{partRegistration, true, func() { addonhealth.Register(m, addonhealth.Config{Client: l.client, Clock: l.Clock}) }},
		{partPlacement, true, func() {
			placement.Register(m, placement.Config{Client: l.client, Clock: l.Clock, Metrics: l.placements})
		}},
		{partAddOn, f.AddOnManagement, func() { addon.Register(m, addon.Config{Client: l.client, Manager: addOnManager, Clock: l.Clock}) }},
		{partAddOn, f.ManagedServiceAccount, func() {
			serviceaccount.Register(m, serviceaccount.Config{Client: l.client, Manager: addOnManager, Clock: l.Clock, Lifetime: f.EphemeralIdentity})
		}},
		{partAddOn, f.ManagedServiceAccount && f.ClusterProfile && f.ProfilesServed, func() {
			credential.Register(m, credential.Config{Client: l.client, Manager: addOnManager, Clock: l.Clock, Index: index(), Log: l.Log})
		}},
		{partWork, f.ManifestWorkReplicaSet, func() { replicaset.Register(m, replicaset.Config{Client: l.client, Clock: l.Clock}) }},
		{partWork, f.CleanUpCompletedManifestWork, func() { workgc.Register(m, workgc.Config{Client: l.client, Clock: l.Clock}) }},
		{partWork, f.ClusterPermission && f.PermissionsServed, func() { permission.Register(m, permission.Config{Client: l.client, Clock: l.Clock}) }},
	} {
		if loop.on && slices.Contains(l.parts, loop.part) {
			loop.register()
		}
	}
}

// scheme returns a scheme with every kind that is cached in full.
func scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		certificatesv1.AddToScheme, corev1.AddToScheme, clusterv1.AddToScheme, clusterv1alpha1.AddToScheme, clusterv1beta1.AddToScheme, clusterv1beta2.AddToScheme,
		workv1alpha1.AddToScheme, multiclusterv1alpha1.AddToScheme, permissionv1alpha1.AddToScheme, addonhealth.AddToScheme, selection.AddToScheme,
	} {
		utilruntime.Must(add(s))
	}
	return s
}

// kinds limits what is cached of each kind: RBAC objects and certificate requests of
// clusters, not those of add-ons; Secrets of join tokens, without their secret data; only
// metadata of objects that are just counted or compared. Kinds of which a hub holds thousands
// are packed. The authorities of clusters are kept only if their profiles show them.
func kinds(profiles bool) []manager.Kind {
	selector, err := labels.Parse(clusterv1.LabelClusterName + ",!" + clusterv1.LabelAddOnName)
	utilruntime.Must(err)
	tokens, err := labels.Parse(clusterv1.LabelJoinToken)
	utilruntime.Must(err)
	trim := trimCluster
	if profiles {
		trim = manager.Trim
	}
	out := []manager.Kind{
		{Example: &clusterv1.ManagedCluster{}, Transform: trim, Packed: true},
		{Example: &multiclusterv1alpha1.ClusterProfile{}, Packed: true},
		{Example: &permissionv1alpha1.ClusterPermission{}, Packed: true},
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
