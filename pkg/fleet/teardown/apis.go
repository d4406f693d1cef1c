// SPDX-License-Identifier: Apache-2.0

package teardown

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-ocm/kubectl-ocm/config/crd"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1alpha1"
	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
	clusterv1beta2 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta2"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
)

// KeptAPIs returns the names of the hub's definitions that stay with their objects when the hub is
// removed, and after it was: those that carry operatorv1.AnnotationRemovalPolicy. The hub's process
// sets it while it is to keep its APIs, and a later hub takes it away.
func KeptAPIs(ctx context.Context, client dynamic.Interface) ([]string, error) {
	var out []string
	for _, name := range append([]string{crd.ClusterPermissions}, hubCRDs...) {
		live, err := get(ctx, client.Resource(definitions), name, "definition "+name)
		if err != nil {
			return nil, err
		}
		if isKept(live) {
			out = append(out, name)
		}
	}
	return out, nil
}

func isKept(definition *unstructured.Unstructured) bool {
	return definition != nil && definition.GetAnnotations()[operatorv1.AnnotationRemovalPolicy] == operatorv1.RemovalPolicyKeep
}

// keepsAPIs reports whether the APIs stay: because the caller says so, or because that of clusters
// is marked, which is so from the first write of such a removal, whoever continues it.
func (h *hubRemoval) keepsAPIs(ctx context.Context) (bool, error) {
	if h.o.KeepAPIs {
		return true, nil
	}
	live, err := h.clustersAPI(ctx)
	return isKept(live), err
}

// clustersAPI returns the definition of clusters, or nil.
func (h *hubRemoval) clustersAPI(ctx context.Context) (*unstructured.Unstructured, error) {
	name := managedClusters.GroupResource().String()
	return get(ctx, h.client.Resource(definitions), name, "definition "+name)
}

// markAPIs marks that of clusters if the APIs are to stay: once the process has ended, its arguments
// are gone, and whoever continues has to know.
func (h *hubRemoval) markAPIs(ctx context.Context) (string, error) {
	if !h.o.KeepAPIs {
		return "", nil
	}
	live, err := h.clustersAPI(ctx)
	if err != nil || live == nil || isKept(live) {
		return "", err
	}
	mark := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, operatorv1.AnnotationRemovalPolicy, operatorv1.RemovalPolicyKeep)
	return "", h.keepAPI(ctx, live.GetName(), mark)
}

// disownAPIs marks the definitions as kept and removes our label and version, so that any later hub
// may take them over.
func (h *hubRemoval) disownAPIs(ctx context.Context) (string, error) {
	if waiting, err := h.markAPIs(ctx); waiting != "" || err != nil {
		return waiting, err
	}
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:null},"annotations":{%q:%q,%q:null,%q:null}}}`, operatorv1.LabelCreatedByClusterManager,
		operatorv1.AnnotationRemovalPolicy, operatorv1.RemovalPolicyKeep, operatorv1.AnnotationVersion, clusterv1.AnnotationIntent)
	for _, name := range append([]string{crd.ClusterPermissions}, hubCRDs...) {
		live, err := get(ctx, h.client.Resource(definitions), name, "definition "+name)
		if err != nil {
			return "", err
		}
		ours := live != nil && live.GetLabels()[operatorv1.LabelCreatedByClusterManager] == operatorv1.DefaultClusterManagerName
		if !ours && (live == nil || name == crd.ClusterPermissions || isKept(live)) {
			continue // it may belong to others, or is done
		}
		if err := h.keepAPI(ctx, name, patch); err != nil {
			return "", err
		}
	}
	return "", nil
}

func (h *hubRemoval) keepAPI(ctx context.Context, name string, patch []byte) error {
	_, err := h.client.Resource(definitions).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	return failed("keeping definition "+name, notFoundIsNil(err))
}

// keptKinds are those whose objects a user may have put into a namespace of the hub.
var keptKinds = []schema.GroupVersionResource{
	manifestWorks, manifestWorkReplica, managedAddOns,
	clusterv1beta1.GroupVersion.WithResource("placements"), clusterv1beta2.GroupVersion.WithResource("managedclustersetbindings"),
	clusterv1alpha1.GroupVersion.WithResource("addonplacementscores"), addonv1alpha1.GroupVersion.WithResource("addondeploymentconfigs"),
}

// holdsKept reports whether a namespace has objects of the APIs that stay.
func (h *hubRemoval) holdsKept(ctx context.Context, namespace string) (bool, error) {
	keep, err := h.keepsAPIs(ctx)
	if err != nil || !keep {
		return false, err
	}
	for _, kind := range keptKinds {
		found, err := list(ctx, h.client, kind, namespace, "")
		if err != nil || len(found) > 0 {
			return err == nil, err
		}
	}
	return false, nil
}
