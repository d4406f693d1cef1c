// SPDX-License-Identifier: Apache-2.0

package teardown

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	workv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// What the hub process creates, by name.
var (
	hubValidating = []string{
		"clusternamespacevalidators.admission.cluster.open-cluster-management.io",
		"managedclusterstatusvalidators.admission.cluster.open-cluster-management.io",
		"managedclustervalidators.admission.cluster.open-cluster-management.io",
		"addontemplatevalidators.admission.addon.open-cluster-management.io",
		"managedclusteraddonstatusvalidators.admission.addon.open-cluster-management.io",
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
	// hubCRDs in the order of their removal: first those whose objects agents and loops have
	// to release.
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
	hubMadeSecrets = []string{
		operatorv1.SecretRegistrationWebhookServingCert, operatorv1.SecretWorkWebhookServingCert,
		operatorv1.SecretAddOnWebhookServingCert, operatorv1.SecretPlacementDebugServingCert, operatorv1.SecretSigner,
	}
)

// HubAdmission returns the names of a hub's admission configurations, which its process
// creates.
func HubAdmission() (validating, mutating []string) {
	return slices.Clone(hubValidating), slices.Clone(hubMutating)
}

// HubInstances removes, as far as it can without waiting: admission, so that nothing is refused
// by a process that is ending; conversion; and all ManagedClusters with what is in their
// namespaces, after making their works harmless. It returns what it waits for, or an empty
// text when nothing is left. No loop of the hub may run meanwhile, or it would recreate what
// is deleted. The hub process calls it when its ClusterManager is deleted, until nothing is
// left, and then HubRest.
func HubInstances(ctx context.Context, client dynamic.Interface) (string, error) {
	return newHubRemoval(client, HubOptions{}).instances(ctx)
}

// HubRest removes what else the hub process made: the rights of agents, the APIs, certificates
// and, if it has the right to, their namespace. It returns what it waits for.
func HubRest(ctx context.Context, client dynamic.Interface) (string, error) {
	return newHubRemoval(client, HubOptions{}).rest(ctx)
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
}

func newHubRemoval(client dynamic.Interface, o HubOptions) *hubRemoval {
	o.complete()
	keeping := KeepOptions{Patience: -1, Clock: o.Clock}
	if o.Force {
		keeping.Patience = o.AgentPatience
	}
	return &hubRemoval{client: client, o: o, keeper: newKeeper(client, keeping)}
}

func (h *hubRemoval) instances(ctx context.Context) (string, error) {
	return inOrder(ctx, h.admission, h.conversion, h.keeper.round, h.clusters, h.leftovers)
}

func (h *hubRemoval) rest(ctx context.Context) (string, error) {
	return inOrder(ctx, h.rights, h.profiles, h.definitions, h.certificates, h.components)
}

func (h *hubRemoval) admission(ctx context.Context) (string, error) {
	var errs []error
	for _, name := range hubMutating {
		errs = append(errs, reconcile.Delete(ctx, h.client, reconcile.Target{Resource: mutatingWebhooks, Name: name}))
	}
	for _, name := range hubValidating {
		errs = append(errs, reconcile.Delete(ctx, h.client, reconcile.Target{Resource: validatingWebhooks, Name: name}))
	}
	return "", errors.Join(errs...)
}

// conversion removes the webhook from the add-on APIs; from then on objects are read in the
// version they are stored in.
func (h *hubRemoval) conversion(ctx context.Context) (string, error) {
	for _, name := range hubConverted {
		live, err := h.client.Resource(hubDefinitions).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("reading definition %s: %w", name, err)
		}
		strategy, _, _ := unstructured.NestedString(live.Object, "spec", "conversion", "strategy")
		if strategy != "Webhook" {
			continue
		}
		patch := []byte(`{"spec":{"conversion":{"strategy":"None","webhook":null}}}`)
		if _, err := h.client.Resource(hubDefinitions).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil &&
			!apierrors.IsNotFound(err) {
			return "", fmt.Errorf("ending the conversion of %s: %w", name, err)
		}
	}
	return "", nil
}

// clusters deletes all ManagedClusters with what belongs to them.
func (h *hubRemoval) clusters(ctx context.Context) (string, error) {
	list, err := h.list(ctx, managedClusters, "")
	if err != nil || len(list) == 0 {
		return "", err
	}
	held := ""
	for i := range list {
		if err := h.delete(ctx, managedClusters, &list[i]); err != nil {
			return "", err
		}
		content, err := h.clusterContent(ctx, list[i].GetName())
		if err != nil {
			return "", err
		}
		if content != "" {
			held = cmp.Or(held, content)
			continue
		}
		if err := dropFinalizers(ctx, h.client.Resource(managedClusters), list[i].GetName(),
			clusterv1.FinalizerAPIResourceCleanup, clusterv1.FinalizerResourceCleanup); err != nil {
			return "", err
		}
	}
	if list, err = h.list(ctx, managedClusters, ""); err != nil || len(list) == 0 {
		return "", err
	}
	return cmp.Or(held, describeObjects("ManagedClusters", list)), nil
}

// clusterContent deletes the add-ons, then the works, of one cluster, and returns what is
// left.
func (h *hubRemoval) clusterContent(ctx context.Context, cluster string) (string, error) {
	for _, resource := range []schema.GroupVersionResource{managedAddOns, manifestWorks} {
		left, err := h.deleteAll(ctx, resource, cluster)
		if err != nil {
			return "", err
		}
		if len(left) > 0 {
			return describeObjects(resource.Resource, left), nil
		}
	}
	return "", nil
}

// leftovers deletes what is in no cluster's namespace.
func (h *hubRemoval) leftovers(ctx context.Context) (string, error) {
	for _, resource := range []schema.GroupVersionResource{manifestWorkReplica, managedAddOns, manifestWorks} {
		left, err := h.deleteAll(ctx, resource, metav1.NamespaceAll)
		if err != nil {
			return "", err
		}
		if len(left) > 0 {
			return describeObjects(resource.Resource, left), nil
		}
	}
	return "", nil
}

// rights removes the roles and bindings of agents, including those of add-ons.
func (h *hubRemoval) rights(ctx context.Context) (string, error) {
	for _, resource := range []schema.GroupVersionResource{hubRoleBindings, hubClusterBindings, hubClusterRoles} {
		list, err := h.listLabelled(ctx, resource, clusterv1.LabelClusterName)
		if err != nil {
			return "", err
		}
		for i := range list {
			o := &list[i]
			if !strings.HasPrefix(o.GetName(), clusterv1.RolePrefixManagedCluster) {
				continue
			}
			if err := h.delete(ctx, resource, o); err != nil {
				return "", err
			}
			if err := dropFinalizers(ctx, h.client.Resource(resource).Namespace(o.GetNamespace()), o.GetName(), clusterv1.FinalizerManifestWorkCleanup); err != nil {
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

// definitions removes the APIs one after another, each when the previous one is gone with all
// its objects.
func (h *hubRemoval) definitions(ctx context.Context) (string, error) {
	for _, name := range hubCRDs {
		if err := reconcile.Delete(ctx, h.client, reconcile.Target{Resource: hubDefinitions, Name: name}); err != nil {
			return "", err
		}
		live, err := h.client.Resource(hubDefinitions).Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			return "API " + name + " to go with its objects", h.nudge(ctx, live)
		}
		if !apierrors.IsNotFound(err) {
			return "", fmt.Errorf("reading definition %s: %w", name, err)
		}
	}
	return "", nil
}

// nudge makes the API server retry the removal of a definition's objects. After a failure, for
// example because the storage of an unused API was just being opened, it may otherwise wait
// forever for the next change of the definition.
func (h *hubRemoval) nudge(ctx context.Context, definition *unstructured.Unstructured) error {
	conditions, _, _ := unstructured.NestedSlice(definition.Object, "status", "conditions")
	failed := slices.ContainsFunc(conditions, func(c any) bool {
		m, ok := c.(map[string]any)
		return ok && m["type"] == "Terminating" && m["reason"] == "InstanceDeletionFailed"
	})
	if !failed {
		return nil
	}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, annotationRetry, definition.GetResourceVersion())
	_, err := h.client.Resource(hubDefinitions).Patch(ctx, definition.GetName(), types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("trying again to remove definition %s: %w", definition.GetName(), err)
	}
	return nil
}

// annotationRetry changes with every retry of the removal of a definition.
const annotationRetry = "operator.open-cluster-management.io/removal-retry"

// certificates deletes the certificates. They are deleted with their namespace when that is
// being deleted: then the hub process has no rights in it any more.
func (h *hubRemoval) certificates(ctx context.Context) (string, error) {
	live, err := h.client.Resource(hubNamespaces).Get(ctx, operatorv1.NamespaceHub, metav1.GetOptions{})
	if isMissing(err) || err == nil && live.GetDeletionTimestamp() != nil {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("reading namespace %s: %w", operatorv1.NamespaceHub, err)
	}
	var errs []error
	for _, name := range hubMadeSecrets {
		errs = append(errs, reconcile.Delete(ctx, h.client, reconcile.Target{Resource: hubSecrets, Namespace: operatorv1.NamespaceHub, Name: name}))
	}
	errs = append(errs, reconcile.Delete(ctx, h.client,
		reconcile.Target{Resource: hubConfigMaps, Namespace: operatorv1.NamespaceHub, Name: operatorv1.ConfigMapCABundle}))
	return "", errors.Join(errs...)
}

// components removes the namespace of the certificates. A caller without the right to recreate
// it has no right to delete it either, and leaves it.
func (h *hubRemoval) components(ctx context.Context) (string, error) {
	waiting, err := hubNamespaceGone(ctx, h.client, operatorv1.NamespaceHub, h.o.ClusterManager)
	if apierrors.IsForbidden(err) {
		return "", nil
	}
	return waiting, err
}

// deleteAll deletes the objects of a resource and returns those that still exist.
func (h *hubRemoval) deleteAll(ctx context.Context, resource schema.GroupVersionResource, namespace string) ([]unstructured.Unstructured, error) {
	list, err := h.list(ctx, resource, namespace)
	if err != nil {
		return nil, err
	}
	for i := range list {
		if err := h.delete(ctx, resource, &list[i]); err != nil {
			return nil, err
		}
		mine := h.releases(resource, list[i].GetNamespace())
		if len(mine) == 0 {
			continue
		}
		if err := dropFinalizers(ctx, h.client.Resource(resource).Namespace(list[i].GetNamespace()), list[i].GetName(), mine...); err != nil {
			return nil, err
		}
	}
	if len(list) == 0 {
		return nil, nil
	}
	return h.list(ctx, resource, namespace)
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

// delete deletes the object that was read.
func (h *hubRemoval) delete(ctx context.Context, resource schema.GroupVersionResource, o *unstructured.Unstructured) error {
	if o.GetDeletionTimestamp() != nil {
		return nil
	}
	return reconcile.Delete(ctx, h.client, reconcile.Target{Resource: resource, Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID()})
}

// list returns all objects of a resource; a resource that is not served has none.
func (h *hubRemoval) list(ctx context.Context, resource schema.GroupVersionResource, namespace string) ([]unstructured.Unstructured, error) {
	list, err := h.client.Resource(resource).Namespace(namespace).List(ctx, metav1.ListOptions{})
	if isMissing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", resource.Resource, err)
	}
	return list.Items, nil
}

func (h *hubRemoval) listLabelled(ctx context.Context, resource schema.GroupVersionResource, selector string) ([]unstructured.Unstructured, error) {
	list, err := h.client.Resource(resource).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", resource.Resource, err)
	}
	return list.Items, nil
}

// isMissing reports whether an object, or its whole kind, does not exist.
func isMissing(err error) bool { return apierrors.IsNotFound(err) || apimeta.IsNoMatchError(err) }

// dropFinalizers removes the named finalizers from an object that is being deleted. The patch
// is only valid for the object that was read.
func dropFinalizers(ctx context.Context, api dynamic.ResourceInterface, name string, finalizers ...string) error {
	live, err := api.Get(ctx, name, metav1.GetOptions{})
	if isMissing(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	kept := slices.DeleteFunc(slices.Clone(live.GetFinalizers()), func(f string) bool {
		return slices.Contains(finalizers, f)
	})
	if live.GetDeletionTimestamp() == nil || len(kept) == len(live.GetFinalizers()) {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"finalizers": kept, "uid": live.GetUID(), "resourceVersion": live.GetResourceVersion(),
	}})
	if err != nil {
		return fmt.Errorf("encoding finalizers: %w", err)
	}
	_, err = api.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil && !isMissing(err) {
		return fmt.Errorf("releasing %s: %w", name, err)
	}
	return nil
}

// shown is how many names a message lists.
const shown = 5

// describeObjects lists objects that still exist, and what holds them.
func describeObjects(kind string, list []unstructured.Unstructured) string {
	var out []string
	for i := range list {
		if i == shown {
			out = append(out, fmt.Sprintf("and %d more", len(list)-shown))
			break
		}
		o := &list[i]
		name := o.GetName()
		if o.GetNamespace() != "" {
			name = o.GetNamespace() + "/" + name
		}
		if f := o.GetFinalizers(); len(f) > 0 {
			name += " (held by " + strings.Join(f, ", ") + ")"
		}
		out = append(out, name)
	}
	return kind + " to go: " + strings.Join(out, ", ")
}

func number(object map[string]any, path ...string) int64 {
	n, _, _ := unstructured.NestedInt64(object, path...)
	return n
}
