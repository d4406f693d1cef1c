// SPDX-License-Identifier: Apache-2.0

package scene

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
)

// perDecision is the number of clusters in one PlacementDecision.
const perDecision = 100

var (
	clusters   = clusterv1.GroupVersion.WithResource("managedclusters")
	namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	placements = clusterv1beta1.GroupVersion.WithResource("placements")
	decisions  = clusterv1beta1.GroupVersion.WithResource("placementdecisions")
)

// clusterName returns the name of a cluster of Fleet, by its number.
func clusterName(i int) string { return fmt.Sprintf("c-%04d", i) }

// Create creates an object from its JSON form.
func (s *Scene) Create(ctx context.Context, resource schema.GroupVersionResource, text string, args ...any) error {
	u, err := Object(text, args...)
	if err != nil {
		return err
	}
	_, err = s.Dyn.Resource(resource).Namespace(u.GetNamespace()).Create(ctx, u, metav1.CreateOptions{})
	return err
}

// Fleet creates clusters that are not accepted, their namespaces, and Placement
// default/all with decisions for all of them. size is a multiple of a hundred.
func (s *Scene) Fleet(size int) {
	s.t.Helper()
	require.Zero(s.t, size%perDecision)
	s.Each(0, size, func(ctx context.Context, i int) error {
		if err := s.Create(
			ctx, clusters,
			`{"apiVersion":"cluster.open-cluster-management.io/v1","kind":"ManagedCluster","metadata":{"name":%q}}`,
			clusterName(i),
		); err != nil {
			return err
		}
		return s.Create(ctx, namespaces, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q}}`, clusterName(i))
	})
	require.NoError(s.t, s.Create(s.t.Context(), placements, `{"apiVersion":"cluster.open-cluster-management.io/v1beta1","kind":"Placement",
		"metadata":{"name":"all","namespace":"default","annotations":{"cluster.open-cluster-management.io/experimental-scheduling-disable":"true"}},"spec":{}}`))
	for first := 0; first < size; first += perDecision {
		name := fmt.Sprintf("all-%d", first/perDecision+1)
		require.NoError(s.t, s.Create(s.t.Context(), decisions, `{"apiVersion":"cluster.open-cluster-management.io/v1beta1",
			"kind":"PlacementDecision","metadata":{"name":%q,"namespace":"default","labels":{
			"cluster.open-cluster-management.io/placement":"all","cluster.open-cluster-management.io/decision-group-index":"0",
			"cluster.open-cluster-management.io/decision-group-name":""}}}`, name))
		list := []map[string]string{}
		for i := range perDecision {
			list = append(list, map[string]string{"clusterName": clusterName(first + i), "reason": ""})
		}
		body, err := json.Marshal(map[string]any{"status": map[string]any{"decisions": list}})
		require.NoError(s.t, err)
		_, err = s.Dyn.Resource(decisions).Namespace("default").Patch(s.t.Context(), name, types.MergePatchType, body, metav1.PatchOptions{}, "status")
		require.NoError(s.t, err)
	}
}
