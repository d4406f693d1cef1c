// SPDX-License-Identifier: Apache-2.0

package teardown

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-ocm/kubectl-ocm/config/crd"
	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	connectv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/connect/v1alpha1"
	multiclusterv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/multicluster/v1alpha1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	workv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1alpha1"
)

// What the hub process creates, by name.
var (
	hubValidating = []string{
		"clusterpermissionvalidators.admission.rbac.open-cluster-management.io",
		"clusternamespacevalidators.admission.cluster.open-cluster-management.io",
		"managedclusterstatusvalidators.admission.cluster.open-cluster-management.io",
		"managedclustervalidators.admission.cluster.open-cluster-management.io",
		"addontemplatevalidators.admission.addon.open-cluster-management.io",
		"managedclusteraddonstatusvalidators.admission.addon.open-cluster-management.io",
		"managedclusteraddonvalidators.admission.addon.open-cluster-management.io",
		"managedclustersetbindingvalidators.admission.cluster.open-cluster-management.io",
		"managedclustersetvalidators.admission.cluster.open-cluster-management.io",
		"manifestworkreplicasetvalidators.admission.work.open-cluster-management.io",
		"manifestworkstatusvalidators.admission.work.open-cluster-management.io",
		"manifestworkvalidators.admission.work.open-cluster-management.io",
		"placementvalidators.admission.cluster.open-cluster-management.io",
	}
	hubMutating  = []string{"managedclustermutators.admission.cluster.open-cluster-management.io"}
	hubConverted = []string{
		"clustermanagementaddons.addon.open-cluster-management.io",
		"managedclusteraddons.addon.open-cluster-management.io",
	}
	// hubCRDs in the order of their removal: first those whose objects agents and loops had to
	// release, one after another (releasedCRDs), then all others at once.
	hubCRDs = []string{
		"managedclusteraddons.addon.open-cluster-management.io",
		"manifestworks.work.open-cluster-management.io",
		"managedclusters.cluster.open-cluster-management.io",
		"manifestworkreplicasets.work.open-cluster-management.io",
		"managedclustersets.cluster.open-cluster-management.io",
		"managedclustersetbindings.cluster.open-cluster-management.io",
		"placements.cluster.open-cluster-management.io",
		"placementdecisions.cluster.open-cluster-management.io",
		"addonplacementscores.cluster.open-cluster-management.io",
		"clustermanagementaddons.addon.open-cluster-management.io",
		"addondeploymentconfigs.addon.open-cluster-management.io",
		"addontemplates.addon.open-cluster-management.io",
	}
	releasedCRDs   = 4
	hubMadeSecrets = []string{
		operatorv1.SecretRegistrationWebhookServingCert, operatorv1.SecretWorkWebhookServingCert,
		operatorv1.SecretAddOnWebhookServingCert, operatorv1.SecretPlacementDebugServingCert, operatorv1.SecretProxyServingCert, operatorv1.SecretSigner,
	}
)

// HubAdmission returns the names of a hub's admission configurations, which its process
// creates.
func HubAdmission() (validating, mutating []string) {
	return slices.Clone(hubValidating), slices.Clone(hubMutating)
}

// HubRemoval is the part of the hub process in the removal of its hub. It is repeated until nothing
// is left. No loop of the hub may run meanwhile, or it would recreate what is deleted.
type HubRemoval struct {
	client    dynamic.Interface
	keepAPIs  bool
	withdrawn int
}

// NewHubRemoval returns a removal that has not begun. Another process can continue what one has
// begun. keepAPIs is described at HubOptions.
func NewHubRemoval(client dynamic.Interface, keepAPIs bool) *HubRemoval {
	return &HubRemoval{client: client, keepAPIs: keepAPIs}
}

// Instances removes, as far as it can without waiting: admission, so that nothing is refused by a
// process that is ending; conversion; the components of the split layout; and all ManagedClusters
// with what is in their namespaces, after making their works harmless. If the APIs are kept, the
// clusters and all else of users stay. It returns what it waits for, or an empty text when nothing
// is left.
func (r *HubRemoval) Instances(ctx context.Context) (string, error) {
	h := newHubRemoval(r.client, HubOptions{KeepAPIs: r.keepAPIs})
	h.withdrawn, h.sight = r.withdrawn, processSight
	waiting, err := h.instances(ctx)
	r.withdrawn = h.withdrawn
	return waiting, err
}

// Rest removes what else the hub process made, after Instances: the rights of agents, the APIs,
// certificates and, if it has the right to, their namespace. It returns what it waits for.
func (r *HubRemoval) Rest(ctx context.Context) (string, error) {
	return newHubRemoval(r.client, HubOptions{KeepAPIs: r.keepAPIs}).rest(ctx)
}

// HubWithoutProcess removes a whole hub, as Hub does, whose process has ended for good. It goes as
// far as it can without waiting, and returns what it waits for. keepAPIs is described at HubOptions.
func HubWithoutProcess(ctx context.Context, client dynamic.Interface, keepAPIs bool) (string, error) {
	return newHubRemoval(client, HubOptions{KeepAPIs: keepAPIs}).round(ctx)
}

func inOrder(ctx context.Context, steps ...func(context.Context) (string, error)) (string, error) {
	for _, step := range steps {
		waiting, err := step(ctx)
		if waiting != "" || err != nil {
			return waiting, err
		}
	}
	return "", nil
}

// hubRemoval is one removal.
type hubRemoval struct {
	client dynamic.Interface
	o      HubOptions
	keeper *keeper
	// tired is set when agents that confirmed have not done the rest in time.
	tired bool
	// withdrawn is the number of passes in which admission, conversion and the components of the split
	// layout, which are gone, are not looked at; sight is what it is after they were.
	withdrawn, sight int
}

// How many passes need not look at what was withdrawn, of a removal from outside, which is repeated
// four times a second, and of that of the process. Somebody may make admission again which nobody
// answers, and which then keeps agents from releasing their works.
const outsideSight, processSight = 20, 2

func newHubRemoval(client dynamic.Interface, o HubOptions) *hubRemoval {
	o.AgentPatience = cmp.Or(o.AgentPatience, keepPatience)
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	keeping := KeepOptions{Patience: -1, Clock: o.Clock}
	if o.Force {
		keeping.Patience = o.AgentPatience
	}
	return &hubRemoval{client: client, o: o, keeper: newKeeper(client, keeping), sight: outsideSight}
}

func (h *hubRemoval) instances(ctx context.Context) (string, error) {
	keep, err := h.keepsAPIs(ctx)
	switch {
	case err != nil:
		return "", err
	case keep:
		return inOrder(ctx, h.disownAPIs, h.withdraw)
	}
	return inOrder(ctx, h.withdraw, h.keeper.round, h.clusters, h.leftovers)
}

// withdraw removes admission, conversion and the components of the split layout.
func (h *hubRemoval) withdraw(ctx context.Context) (string, error) {
	if h.withdrawn > 0 {
		h.withdrawn--
		return "", nil
	}
	waiting, err := inOrder(ctx, h.admission, h.conversion, h.split)
	if waiting == "" && err == nil {
		h.withdrawn = h.sight
	}
	return waiting, err
}

func (h *hubRemoval) rest(ctx context.Context) (string, error) {
	return inOrder(ctx, h.made, h.components)
}

// made removes what else the hub process made, except for the namespace of the certificates.
// Admission is looked at for a last time: some of it is asked about namespaces.
func (h *hubRemoval) made(ctx context.Context) (string, error) {
	keep, err := h.keepsAPIs(ctx)
	if err != nil {
		return "", err
	}
	steps := []func(context.Context) (string, error){h.rights, h.profiles}
	if !keep {
		steps = append(steps, h.permissions, h.definitions)
	}
	return inOrder(ctx, append(steps, h.certificates, h.processPolicy, h.admission)...)
}

// processPolicy removes the NetworkPolicy of the compact layout.
func (h *hubRemoval) processPolicy(ctx context.Context) (string, error) {
	return "", removeNamed(ctx, h.client, networkPolicies, operatorv1.NamespaceOperator, hub.ProcessPolicy)
}

func (h *hubRemoval) admission(ctx context.Context) (string, error) {
	return "", errors.Join(removeNamed(ctx, h.client, apiServices, "", connectv1alpha1.APIService),
		removeNamed(ctx, h.client, mutatingWebhooks, "", hubMutating...),
		removeNamed(ctx, h.client, validatingWebhooks, "", hubValidating...))
}

// conversion removes the webhook from the add-on APIs; from then on objects are read in the
// version they are stored in.
func (h *hubRemoval) conversion(ctx context.Context) (string, error) {
	api := h.client.Resource(definitions)
	for _, name := range hubConverted {
		live, err := get(ctx, api, name, "definition "+name)
		if err != nil {
			return "", err
		}
		if live == nil {
			continue
		}
		strategy, _, _ := unstructured.NestedString(live.Object, "spec", "conversion", "strategy")
		if strategy != "Webhook" {
			continue
		}
		patch := []byte(`{"spec":{"conversion":{"strategy":"None","webhook":null}}}`)
		_, err = api.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
		if err := failed("ending the conversion of "+name, notFoundIsNil(err)); err != nil {
			return "", err
		}
	}
	return "", nil
}

// clusters deletes all ManagedClusters with what belongs to them.
func (h *hubRemoval) clusters(ctx context.Context) (string, error) {
	all, err := list(ctx, h.client, managedClusters, "", "")
	if err != nil || len(all) == 0 {
		return "", err
	}
	held := ""
	for _, mc := range all {
		if err := remove(ctx, h.client, managedClusters, mc); err != nil {
			return "", err
		}
		content, err := h.deleteAll(ctx, mc.GetName(), managedAddOns, manifestWorks)
		if err != nil {
			return "", err
		}
		if content != "" {
			held = cmp.Or(held, content)
			continue
		}
		if err := h.dropFinalizers(ctx, managedClusters, "", mc.GetName(),
			clusterv1.FinalizerAPIResourceCleanup, clusterv1.FinalizerResourceCleanup); err != nil {
			return "", err
		}
	}
	if all, err = list(ctx, h.client, managedClusters, "", ""); err != nil || len(all) == 0 {
		return "", err
	}
	return cmp.Or(held, describeObjects("ManagedClusters", all)), nil
}

// leftovers deletes what is in no cluster's namespace.
func (h *hubRemoval) leftovers(ctx context.Context) (string, error) {
	return h.deleteAll(ctx, metav1.NamespaceAll, manifestWorkReplica, managedAddOns, manifestWorks)
}

// rights removes the roles and bindings of agents, including those of add-ons.
func (h *hubRemoval) rights(ctx context.Context) (string, error) {
	for _, resource := range []schema.GroupVersionResource{roleBindings, clusterBindings, clusterRoles} {
		found, err := list(ctx, h.client, resource, "", clusterv1.LabelClusterName)
		if err != nil {
			return "", err
		}
		for _, u := range found {
			if !strings.HasPrefix(u.GetName(), clusterv1.RolePrefixManagedCluster) {
				continue
			}
			if err := remove(ctx, h.client, resource, u); err != nil {
				return "", err
			}
			if err := h.dropFinalizers(ctx, resource, u.GetNamespace(), u.GetName(), clusterv1.FinalizerManifestWorkCleanup); err != nil {
				return "", err
			}
		}
	}
	return "", nil
}

// profiles removes what the hub created of a third party's API, which stays.
func (h *hubRemoval) profiles(ctx context.Context) (string, error) {
	return "", Profiles(ctx, h.client)
}

// permissions removes the API of ClusterPermissions with its objects, if the hub has installed
// it. What they gave is gone by then, or was left on the clusters, as works are.
func (h *hubRemoval) permissions(ctx context.Context) (string, error) {
	const what = "definition " + crd.ClusterPermissions
	live, err := get(ctx, h.client.Resource(definitions), crd.ClusterPermissions, what)
	if err != nil || live == nil || live.GetLabels()[operatorv1.LabelCreatedByClusterManager] != operatorv1.DefaultClusterManagerName {
		return "", err
	}
	if err := remove(ctx, h.client, definitions, live); err != nil {
		return "", err
	}
	if live, err = get(ctx, h.client.Resource(definitions), crd.ClusterPermissions, what); err != nil || live == nil {
		return "", err
	}
	return "API " + crd.ClusterPermissions + " to go with its objects", h.nudge(ctx, live)
}

// definitions removes the APIs with their objects. It returns the first that is left.
func (h *hubRemoval) definitions(ctx context.Context) (string, error) {
	waiting := ""
	for i, name := range hubCRDs {
		if err := removeNamed(ctx, h.client, definitions, "", name); err != nil {
			return "", err
		}
		live, err := get(ctx, h.client.Resource(definitions), name, "definition "+name)
		if err != nil {
			return "", err
		}
		if live == nil {
			continue
		}
		waiting = cmp.Or(waiting, "API "+name+" to go with its objects")
		if err := h.nudge(ctx, live); err != nil || i < releasedCRDs {
			return waiting, err
		}
	}
	return waiting, nil
}

// nudge makes the API server retry the removal of a definition's objects. After a failure, for
// example because the storage of an unused API was just being opened, it may otherwise wait
// forever for the next change of the definition.
func (h *hubRemoval) nudge(ctx context.Context, definition *unstructured.Unstructured) error {
	conditions, _, _ := unstructured.NestedSlice(definition.Object, "status", "conditions")
	if !slices.ContainsFunc(conditions, func(c any) bool {
		m, ok := c.(map[string]any)
		return ok && m["type"] == "Terminating" && m["reason"] == "InstanceDeletionFailed"
	}) {
		return nil
	}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, annotationRetry, definition.GetResourceVersion())
	_, err := h.client.Resource(definitions).Patch(ctx, definition.GetName(), types.MergePatchType, patch, metav1.PatchOptions{})
	return failed("trying again to remove definition "+definition.GetName(), notFoundIsNil(err))
}

// annotationRetry changes with every retry of the removal of a definition.
const annotationRetry = "operator.open-cluster-management.io/removal-retry"

// certificates deletes the certificates. They are deleted with their namespace when that is
// being deleted: then the hub process has no rights in it any more.
func (h *hubRemoval) certificates(ctx context.Context) (string, error) {
	live, err := get(ctx, h.client.Resource(namespaces), operatorv1.NamespaceHub, "namespace "+operatorv1.NamespaceHub)
	if err != nil || live == nil || live.GetDeletionTimestamp() != nil {
		return "", err
	}
	return "", errors.Join(removeNamed(ctx, h.client, secrets, operatorv1.NamespaceHub, hubMadeSecrets...),
		removeNamed(ctx, h.client, configMaps, operatorv1.NamespaceHub, operatorv1.ConfigMapCABundle))
}

// components removes the namespace of the certificates. A caller without the right to recreate
// it has no right to delete it either, and leaves it.
func (h *hubRemoval) components(ctx context.Context) (string, error) {
	waiting, err := h.namespaceGone(ctx, operatorv1.NamespaceHub)
	if apierrors.IsForbidden(err) {
		return "", nil
	}
	return waiting, err
}

// deleteAll deletes the objects of the resources, each resource when nothing is left of the one
// before it, and returns what is left.
func (h *hubRemoval) deleteAll(ctx context.Context, namespace string, resources ...schema.GroupVersionResource) (string, error) {
	for _, resource := range resources {
		all, err := list(ctx, h.client, resource, namespace, "")
		if err != nil {
			return "", err
		}
		for _, u := range all {
			if err := remove(ctx, h.client, resource, u); err != nil {
				return "", err
			}
			if mine := h.releases(resource, u.GetNamespace()); len(mine) > 0 {
				if err := h.dropFinalizers(ctx, resource, u.GetNamespace(), u.GetName(), mine...); err != nil {
					return "", err
				}
			}
		}
		if len(all) == 0 {
			continue
		}
		if all, err = list(ctx, h.client, resource, namespace, ""); err != nil || len(all) > 0 {
			return describeObjects(resource.Resource, all), err
		}
	}
	return "", nil
}

// releases returns the finalizers that nothing will remove: those of the hub's own loops,
// which have ended, and with force that of an agent that is away. Others belong to programs
// that may be alive.
func (h *hubRemoval) releases(resource schema.GroupVersionResource, cluster string) []string {
	switch {
	case resource == managedAddOns:
		return addOnFinalizers
	case resource == manifestWorkReplica:
		return []string{workv1alpha1.FinalizerManifestWorkReplicaSet}
	case resource == manifestWorks && h.o.Force && (h.tired || h.keeper.away[cluster]):
		return []string{workv1.FinalizerManifestWork}
	}
	return nil
}

// addOnFinalizers hold an add-on until it is removed from its cluster. When the hub is removed
// it stays there, as works do.
var addOnFinalizers = []string{
	addonv1alpha1.FinalizerPreDelete, addonv1alpha1.FinalizerHostingPreDelete, addonv1alpha1.FinalizerHostingManifests,
	addonv1alpha1.DeprecatedFinalizerPreDelete, addonv1alpha1.DeprecatedFinalizerHostingPreDelete, addonv1alpha1.DeprecatedFinalizerHostingManifests,
}

// dropFinalizers removes the named finalizers from an object that is being deleted.
func (h *hubRemoval) dropFinalizers(ctx context.Context, resource schema.GroupVersionResource, namespace, name string, finalizers ...string) error {
	api := h.client.Resource(resource).Namespace(namespace)
	live, err := get(ctx, api, name, name)
	if err != nil || live == nil || live.GetDeletionTimestamp() == nil {
		return err
	}
	return failed("releasing "+name, release(ctx, api, live, finalizers...))
}

// shown is how many names a message lists.
const shown = 5

// describeObjects lists objects that still exist, and what holds them; "" when there are none.
func describeObjects(kind string, all []*unstructured.Unstructured) string {
	if len(all) == 0 {
		return ""
	}
	var out []string
	for i, o := range all {
		if i == shown {
			out = append(out, fmt.Sprintf("and %d more", len(all)-shown))
			break
		}
		name := strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/")
		if f := o.GetFinalizers(); len(f) > 0 {
			name += " (held by " + strings.Join(f, ", ") + ")"
		}
		out = append(out, name)
	}
	return kind + " to go: " + strings.Join(out, ", ")
}

var hubProfiles = multiclusterv1alpha1.GroupVersion.WithResource("clusterprofiles")

// Profiles deletes the ClusterProfiles that the hub made: those with the hub's manager label,
// the name of their cluster, and the hub's name in the spec, which is immutable. Other
// ClusterProfiles and the API stay. It is used when the gate is off or the hub is removed;
// where the API is not served it does nothing.
func Profiles(ctx context.Context, client dynamic.Interface) error {
	var errs []error
	for p, err := range objects(ctx, client.Resource(hubProfiles), multiclusterv1alpha1.LabelClusterManager+"="+multiclusterv1alpha1.ManagerName) {
		if err != nil {
			errs = append(errs, fmt.Errorf("listing clusterprofiles: %w", err))
			break
		}
		manager, _, _ := unstructured.NestedString(p.Object, "spec", "clusterManager", "name")
		if manager == multiclusterv1alpha1.ManagerName && p.GetLabels()[clusterv1.LabelClusterName] == p.GetName() {
			errs = append(errs, remove(ctx, client, hubProfiles, p))
		}
	}
	return errors.Join(errs...)
}
