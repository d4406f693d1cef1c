// SPDX-License-Identifier: Apache-2.0

//go:build perf

package addon

import (
	"context"
	"fmt"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness/audit"
	"github.com/kubectl-ocm/kubectl-ocm/test/perf/budget"
	"github.com/kubectl-ocm/kubectl-ocm/test/perf/scene"
)

// accepted is how many clusters have the add-on whose writes are counted.
const accepted = 100

var (
	clusters  = clusterv1.GroupVersion.WithResource("managedclusters")
	instances = addonv1alpha1.GroupVersion.WithResource("managedclusteraddons")
)

// writers counts the writes to the status of ManagedClusterAddOns by field manager, which is the
// name of the loop.
func writers(s *scene.Scene, from int64) map[string]int {
	out := map[string]int{}
	for _, r := range s.Since(from) {
		if r.Writes() && scene.OfHub(r) && r.What() == "patch managedclusteraddons/status" {
			at, err := url.Parse(r.URI)
			if err == nil {
				out[at.Query().Get("fieldManager")]++
			}
		}
	}
	return out
}

// register gives the template of an add-on a registration, so that its agent is known on the hub.
func (s *run) register(name string) {
	s.t.Helper()
	_, err := s.Dyn.Resource(templates).Patch(s.t.Context(), name, types.MergePatchType,
		[]byte(`{"spec":{"registration":[{"type":"KubeClient","kubeClient":{}}]}}`), metav1.PatchOptions{})
	require.NoError(s.t, err)
}

func TestTheWritesOfAnAddOnStayWithinTheirBudget(t *testing.T) {
	b := budget.Open(t, "../addon-writes.yaml")
	s := &run{Scene: scene.New(t, audit.OnlyResources, audit.NotReads, audit.NotLeases), t: t, clusters: accepted}
	s.Fleet(s.clusters)
	s.Each(0, s.clusters, func(ctx context.Context, i int) error {
		_, err := s.Dyn.Resource(clusters).Patch(ctx, fmt.Sprintf("c-%04d", i), types.MergePatchType,
			[]byte(`{"spec":{"hubAcceptsClient":true}}`), metav1.PatchOptions{})
		return err
	})
	s.prepare("counted")
	s.register("counted")
	s.Settle(quiet)

	began := s.Mark()
	s.install("counted")
	s.Report(selector("counted"), s.clusters)
	s.Settle(quiet)
	list, err := typed.List[addonv1alpha1.ManagedClusterAddOn](t.Context(), s.Dyn, instances, "", metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, list, accepted)
	for i := range list {
		of := list[i].Status.Conditions
		require.True(t, apimeta.IsStatusConditionTrue(of, addonv1alpha1.ConditionRegistrationApplied), "%+v", of)
		require.Equal(t, addonv1alpha1.ReasonCompleted, apimeta.FindStatusCondition(of, addonv1alpha1.ConditionProgressing).Reason, "%+v", of)
		require.NotNil(t, apimeta.FindStatusCondition(of, addonv1alpha1.ConditionAvailable), "%+v", of)
	}
	sum := 0
	for who, n := range writers(s.Scene, began) {
		t.Logf("%5.2f writes of the status by %s", float64(n)/accepted, who)
		sum += n
	}
	b.Count("statusWrites", float64(sum)/accepted)
	b.Complete()
}
