// SPDX-License-Identifier: Apache-2.0

//go:build perf

package registration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
	"github.com/kubectl-ocm/kubectl-ocm/test/perf/scene"
)

// require fails the benchmark when anything was found.
func (s *run) require(what string, found []string) {
	s.t.Helper()
	require.Empty(s.t, found[:min(len(found), 10)], "%s: %d were found", what, len(found))
}

// idleWrites returns the writes of agents, hub and people, except for leases, reviews and
// what concerns named clusters.
func (s *run) idleWrites(from int64, clusters ...string) []string {
	s.t.Helper()
	var out []string
	for _, r := range s.Since(from) {
		o := r.Object
		if by := scene.Sender(r); !r.Writes() || by == scene.Kubernetes || by == scene.Node || o.Resource == "leases" || r.Reviews() ||
			slices.ContainsFunc(clusters, func(c string) bool { return o.Namespace == c || strings.Contains(o.Name, c) }) {
			continue
		}
		// The number of members of a set is written when it changed, at most once in ten
		// seconds, and a starting hub reports its progress.
		if len(clusters) > 0 && (o.Resource == "managedclustersets" || scene.OfHub(r) && r.What() == "patch clustermanagers/status") {
			continue
		}
		out = append(out, fmt.Sprintf("%s: %s %s/%s", scene.Sender(r), r.What(), o.Namespace, o.Name))
	}
	return out
}

// settle waits until nothing but leases is written.
func (s *run) settle() {
	s.t.Helper()
	require.Eventually(s.t, func() bool {
		from := s.Mark()
		<-time.After(11 * time.Second)
		return len(s.idleWrites(from)) == 0
	}, scene.Patience, time.Second)
}

// unknown returns the clusters that are not Available.
func (s *run) unknown() []string {
	s.t.Helper()
	list, err := typed.List[clusterv1.ManagedCluster](s.t.Context(), s.Dyn, clusters, "", metav1.ListOptions{})
	require.NoError(s.t, err)
	var out []string
	for i := range list {
		c := list[i].Status.Conditions
		if list[i].Spec.HubAcceptsClient && apimeta.IsStatusConditionTrue(c, clusterv1.ConditionJoined) &&
			!apimeta.IsStatusConditionTrue(c, clusterv1.ConditionAvailable) {
			out = append(out, list[i].Name)
		}
	}
	return out
}

// placed requires that clusters have their namespace and their rights.
func (s *run) placed(names []string) {
	s.t.Helper()
	rbac := func(resource string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: resource}
	}
	for resource, each := range map[schema.GroupVersionResource]int{
		{Version: "v1", Resource: "namespaces"}: 1,
		rbac("clusterroles"):                    1,
		rbac("clusterrolebindings"):             1,
		rbac("rolebindings"):                    2,
	} {
		found := map[string]int{}
		list, err := typed.List[metav1.PartialObjectMetadata](s.t.Context(), s.Dyn, resource, "", metav1.ListOptions{LabelSelector: clusterv1.LabelClusterName})
		require.NoError(s.t, err)
		for i := range list {
			found[list[i].Labels[clusterv1.LabelClusterName]]++
		}
		for _, name := range names {
			require.Equal(s.t, each, found[name], "%s of cluster %s", resource.Resource, name)
		}
	}
}

// shorten sets shorter lease durations.
func (s *run) shorten(names []string) {
	s.t.Helper()
	body := fmt.Appendf(nil, `{"spec":{"leaseDurationSeconds":%d}}`, duration)
	s.each(names, func(ctx context.Context, name string) error {
		_, err := s.Dyn.Resource(clusters).Patch(ctx, name, types.MergePatchType, body, metav1.PatchOptions{})
		return err
	})
	<-time.After(2 * duration * time.Second)
}
