// SPDX-License-Identifier: Apache-2.0

package addontest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/config/crd"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit/runner"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
)

// patience bounds every wait. A loop tries what failed again after half a minute, and a machine may stand still.
const patience = 3 * time.Minute

// Resources that tests of add-ons read.
var (
	AddOns   = addonv1alpha1.GroupVersion.WithResource("managedclusteraddons")
	Clusters = clusterv1.GroupVersion.WithResource("managedclusters")
	Works    = workv1.GroupVersion.WithResource(workv1.ResourceManifestWorks)
)

// usualRights are what the account of every add-on needs on the hub. An add-on that
// approves certificate requests, reads configurations or grants rights to agents needs
// more.
func usualRights() []rbacv1.PolicyRule {
	rule := func(group, resource string, verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
	}
	return []rbacv1.PolicyRule{
		rule(clusterv1.GroupVersion.Group, "managedclusters", "list", "watch"),
		rule(addonv1alpha1.GroupName, "clustermanagementaddons", "list", "watch"),
		rule(addonv1alpha1.GroupName, "managedclusteraddons", "list", "watch", "patch"),
		rule(addonv1alpha1.GroupName, "managedclusteraddons/status", "patch"),
		rule(addonv1alpha1.GroupName, "managedclusteraddons/finalizers", "update"),
		rule(workv1.GroupVersion.Group, "manifestworks", "list", "watch", "create", "patch", "delete"),
		rule("certificates.k8s.io", "certificatesigningrequests", "list", "watch"),
		rule(rbacv1.GroupName, "roles", "get", "list", "watch", "create", "patch", "delete"),
		rule(rbacv1.GroupName, "rolebindings", "get", "list", "watch", "create", "patch", "delete"),
		rule("events.k8s.io", "events", "create"),
	}
}

// Hub is a hub on which an add-on runs. Its methods fail the test when what they wait for
// does not happen within minutes.
type Hub struct {
	// Admin is an administrator's client, and Config its configuration.
	Admin  dynamic.Interface
	Config *rest.Config
	// Runner runs the add-on.
	Runner *runner.Runner

	t          *testing.T
	name       string
	owner      *unstructured.Unstructured
	namespaces map[string]bool
}

// New starts a hub with its definitions, and the add-on under an account with Rights and
// the rights given here, until the test ends.
func New(t *testing.T, addOn addonkit.AddOn, rights ...rbacv1.PolicyRule) *Hub {
	t.Helper()
	cluster := harness.ControlPlane(t, "hub")
	name := addOn.Options().Name
	h := &Hub{Admin: cluster.Dynamic(t), Config: cluster.Config, t: t, name: name, namespaces: map[string]bool{}}
	definitions, err := crd.Hub()
	require.NoError(t, err)
	for _, d := range definitions {
		h.Write(d)
	}
	h.Write(&rbacv1.ClusterRole{
		TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"}, ObjectMeta: metav1.ObjectMeta{Name: name},
		Rules: append(usualRights(), rights...),
	})
	h.Write(&rbacv1.ClusterRoleBinding{
		TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRoleBinding"}, ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: name, Name: name}},
	})
	client, err := dynamic.NewForConfig(cluster.As(t, name, name))
	require.NoError(t, err)
	h.Runner, err = runner.New(runner.Config{Client: client, Clock: clock.RealClock{}}, addOn)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- h.Runner.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	return h
}

// Write creates an object as the administrator, and returns it as the API server stored
// it. Its kind must be set.
func (h *Hub) Write(object runtime.Object) *unstructured.Unstructured {
	h.t.Helper()
	u, err := typed.ToUnstructured(object)
	require.NoError(h.t, err)
	var out *unstructured.Unstructured
	// A kind that was just defined may not be served yet.
	h.Soon("writing "+u.GetKind()+" "+u.GetName(), func() (err error) {
		out, err = h.Admin.Resource(reconcile.ResourceOf(u.GroupVersionKind())).Namespace(u.GetNamespace()).Create(h.t.Context(), u, metav1.CreateOptions{})
		return err
	})
	return out
}

// Soon waits until wrong returns nil; what names the activity in the failure message.
func (h *Hub) Soon(what string, wrong func() error) {
	h.t.Helper()
	tick, end := time.NewTicker(20*time.Millisecond), time.After(patience)
	defer tick.Stop()
	for err := wrong(); err != nil; err = wrong() {
		select {
		case <-tick.C:
		case <-end:
			require.NoError(h.t, err, what)
		}
	}
}

// namespace creates the namespace of a cluster, unless it exists.
func (h *Hub) namespace(cluster string) {
	h.t.Helper()
	if h.namespaces[cluster] {
		return
	}
	h.namespaces[cluster] = true
	h.Write(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": cluster}}})
}

// Join creates an accepted managed cluster.
func (h *Hub) Join(cluster string) {
	h.t.Helper()
	h.namespace(cluster)
	h.Write(&clusterv1.ManagedCluster{
		TypeMeta: metav1.TypeMeta{APIVersion: clusterv1.GroupVersion.String(), Kind: "ManagedCluster"}, ObjectMeta: metav1.ObjectMeta{Name: cluster},
		Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true},
	})
}

// Accept accepts a managed cluster, or withdraws its acceptance.
func (h *Hub) Accept(cluster string, accept bool) {
	h.t.Helper()
	body := fmt.Appendf(nil, `{"spec":{"hubAcceptsClient":%t}}`, accept)
	_, err := h.Admin.Resource(Clusters).Patch(h.t.Context(), cluster, types.MergePatchType, body, metav1.PatchOptions{})
	require.NoError(h.t, err)
}

// Install registers the add-on, joins a cluster and enables the add-on there; when host
// is not empty, the add-on is hosted on that cluster. It returns the key of the instance.
func (h *Hub) Install(cluster, host string) reconcile.Key {
	h.t.Helper()
	h.Join(cluster)
	annotations := map[string]string{}
	if host != "" {
		annotations[addonv1alpha1.AnnotationHostingClusterName] = host
	}
	return h.Enable(cluster, annotations)
}

// Enable registers the add-on and enables it on a cluster, joined or not, with
// annotations on the instance. It returns the key of the instance.
func (h *Hub) Enable(cluster string, annotations map[string]string) reconcile.Key {
	h.t.Helper()
	h.namespace(cluster)
	if h.owner == nil {
		h.owner = h.Write(&addonv1alpha1.ClusterManagementAddOn{
			TypeMeta: metav1.TypeMeta{APIVersion: addonv1alpha1.GroupVersion.String(), Kind: "ClusterManagementAddOn"}, ObjectMeta: metav1.ObjectMeta{Name: h.name},
		})
	}
	h.Write(&addonv1alpha1.ManagedClusterAddOn{
		TypeMeta: metav1.TypeMeta{APIVersion: addonv1alpha1.GroupVersion.String(), Kind: "ManagedClusterAddOn"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: cluster, Name: h.name, Annotations: annotations,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: h.owner.GetAPIVersion(), Kind: h.owner.GetKind(), Name: h.name, UID: h.owner.GetUID()}},
		},
	})
	return reconcile.Key{Namespace: cluster, Name: h.name}
}

// Await waits until a condition of an instance has a reason, and returns the instance.
func (h *Hub) Await(key reconcile.Key, condition, reason string) *addonv1alpha1.ManagedClusterAddOn {
	h.t.Helper()
	var out *addonv1alpha1.ManagedClusterAddOn
	h.Soon(condition, func() (err error) {
		if out, err = typed.Get[addonv1alpha1.ManagedClusterAddOn](h.t.Context(), h.Admin, AddOns, key.Namespace, key.Name); err != nil {
			return err
		}
		if c := apimeta.FindStatusCondition(out.Status.Conditions, condition); c == nil || c.Reason != reason {
			return fmt.Errorf("no %s %s: %+v", condition, reason, out.Status.Conditions)
		}
		return nil
	})
	return out
}

// Gone waits until the object does not exist.
func (h *Hub) Gone(resource schema.GroupVersionResource, key reconcile.Key) {
	h.t.Helper()
	h.Soon(key.String(), func() error {
		_, err := h.Admin.Resource(resource).Namespace(key.Namespace).Get(h.t.Context(), key.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("%s %s is there: %w", resource.Resource, key, err)
	})
}
