// SPDX-License-Identifier: Apache-2.0

package teardown

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"

	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
)

// TestWhatAHubNeedsForItsClustersIsRemovedOnce repeats a removal that waits for a cluster: it looks
// for the admission configurations until they are gone, and not in each round.
func TestWhatAHubNeedsForItsClustersIsRemovedOnce(t *testing.T) {
	made := func(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
		u.SetNamespace(namespace)
		u.SetName(name)
		return u
	}
	component := made("apps/v1", "Deployment", operatorv1.NamespaceHub, "cluster-manager-work-controller")
	component.SetLabels(map[string]string{operatorv1.LabelCreatedByClusterManager: operatorv1.DefaultClusterManagerName})
	component.SetAnnotations(map[string]string{operatorv1.AnnotationVersion: "v1"})
	cluster := made("cluster.open-cluster-management.io/v1", "ManagedCluster", "", "c1")
	cluster.SetDeletionTimestamp(new(metav1.Now()))
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		deployments: "DeploymentList", managedClusters: "ManagedClusterList", managedAddOns: "ManagedClusterAddOnList",
		manifestWorks: "ManifestWorkList", manifestWorkReplica: "ManifestWorkReplicaSetList",
	}, component, cluster, made("v1", "Namespace", "", operatorv1.NamespaceHub),
		made("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "", hubValidating[0]))
	// round returns how many requests for admission configurations it took.
	round := func(r *HubRemoval) (waiting string, requests int) {
		client.ClearActions()
		waiting, err := r.Instances(t.Context())
		require.NoError(t, err)
		for _, action := range client.Actions() {
			if action.GetResource() == validatingWebhooks {
				requests++
			}
		}
		return waiting, requests
	}
	removal := NewHubRemoval(client, false)
	waiting, requests := round(removal)
	require.Contains(t, waiting, "Deployments of the split layout")
	require.NotZero(t, requests)
	_, requests = round(removal)
	require.NotZero(t, requests, "what the components had is there until now")
	_, requests = round(removal)
	require.Zero(t, requests)
	_, requests = round(NewHubRemoval(client, false))
	require.NotZero(t, requests, "another process knows nothing of it")
}
