// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic/fake"
	clocktesting "k8s.io/utils/clock/testing"

	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// A decision that exists although the view does not know it is not a failure to report on
// the placement: the next pass knows it, and corrects it.
func TestADecisionThatIsThereAlreadyIsTakenOver(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, clusterv1beta1.AddToScheme(scheme))
	there := decision("apps", "p-decision-1")
	there.UID, there.ResourceVersion = "d", "5"
	there.Status.Decisions = []clusterv1beta1.ClusterDecision{{ClusterName: "nobody"}}
	placed := somePlacement()
	client := fake.NewSimpleDynamicClient(scheme, there, placed)
	p := newPool(t, "c1")
	p.placementChanged(nil, placed)
	require.NoError(t, p.start())
	c := &Controller{clock: clocktesting.NewFakePassiveClock(now), queue: p.queue, fleet: p.fleet, metrics: NewMetrics()}
	c.exec = reconcile.NewExecutor(adopting{client, p.recordFound}, Name, c.clock)
	c.exec.OnWrite(p.recordWrite)

	result, err := c.Reconcile(t.Context(), key)
	require.NoError(t, err)
	require.Positive(t, result.RequeueAfter)
	require.Less(t, result.RequeueAfter, time.Second, "at once")
	for _, a := range client.Actions() {
		require.NotEqual(t, "patch", a.GetVerb(), "no write reports it")
	}
	require.Contains(t, p.objects, reconcile.Key{Namespace: "apps", Name: "p-decision-1"})

	result, err = c.Reconcile(t.Context(), key)
	require.NoError(t, err)
	require.Zero(t, result.RequeueAfter)
	u, err := client.Resource(decisionsResource).Namespace("apps").Get(t.Context(), "p-decision-1", metav1.GetOptions{})
	require.NoError(t, err)
	d, err := typed.FromUnstructured[clusterv1beta1.PlacementDecision](u)
	require.NoError(t, err)
	require.Equal(t, "c1", d.Status.Decisions[0].ClusterName)
	require.Equal(t, "p", d.Labels[clusterv1beta1.LabelPlacement])
}
