// SPDX-License-Identifier: Apache-2.0

//go:build perf

package replicaset

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness/audit"
	"github.com/kubectl-ocm/kubectl-ocm/test/perf/budget"
	"github.com/kubectl-ocm/kubectl-ocm/test/perf/scene"
)

const (
	// path of the budgets.
	path = "../replicaset.yaml"
	// fleetSize is the number of clusters that the set selects.
	fleetSize = 1000
	// window is how long the hub is observed at rest, which starts after a time quiet
	// without requests.
	window, quiet = 15 * time.Second, 3 * time.Second
	// payload is the size of the ConfigMap of the template, in bytes.
	payload = 1000
)

var replicaSets = workv1alpha1.GroupVersion.WithResource("manifestworkreplicasets")

// run is a hub with a fleet.
type run struct {
	*scene.Scene
	t *testing.T
}

// deploy applies the set with a value, and returns how long it takes until every
// cluster has a work with it.
func (s *run) deploy(value string) time.Duration {
	s.t.Helper()
	set, err := scene.Object(`{"apiVersion":"work.open-cluster-management.io/v1alpha1","kind":"ManifestWorkReplicaSet",
		"metadata":{"name":"web"},"spec":{"placementRefs":[{"name":"all"}],
		"manifestWorkTemplate":{"workload":{"manifests":[{"apiVersion":"v1","kind":"ConfigMap",
		"metadata":{"namespace":"default","name":"settings"},"data":{"value":%q,"rest":%q}}]}}}}`,
		value, strings.Repeat("x", payload))
	require.NoError(s.t, err)
	return s.Delivered(workv1alpha1.LabelManifestWorkReplicaSet, fleetSize, value, func() {
		_, err = s.Dyn.Resource(replicaSets).Namespace("default").Apply(s.t.Context(), "web", set, metav1.ApplyOptions{FieldManager: "test", Force: true})
		require.NoError(s.t, err)
	})
}

// report marks every work as applied and available, as the agents do, and returns how
// long it takes from the last report until the set is rolled out.
func (s *run) report() time.Duration {
	s.t.Helper()
	s.Report(workv1alpha1.LabelManifestWorkReplicaSet, fleetSize)
	began := time.Now()
	require.Eventually(s.t, func() bool {
		set, err := typed.Get[workv1alpha1.ManifestWorkReplicaSet](s.t.Context(), s.Dyn, replicaSets, "default", "web")
		return err == nil && apimeta.IsStatusConditionTrue(
			set.Status.Conditions, workv1alpha1.ConditionPlacementRolledOut,
		) && set.Status.Summary.Available == fleetSize
	}, scene.Patience, 10*time.Millisecond)
	return time.Since(began)
}

func TestASetReachesAThousandClustersWithinItsBudgets(t *testing.T) {
	b := budget.Open(t, path)
	s := &run{Scene: scene.New(t, audit.OnlyResources, audit.NotReads, audit.NotLeases), t: t}
	puts := budget.LeasePuts(t, s.Config)
	s.Fleet(fleetSize)
	s.Settle(quiet)
	t.Logf("before: %s", s.Memory())

	began := s.Mark()
	b.Time("created", []time.Duration{s.deploy("one")}, puts)
	b.Time("changed", []time.Duration{s.deploy("two")}, puts)
	b.Time("rolledOut", []time.Duration{s.report()}, puts)
	s.Settle(quiet)
	asked := s.Asked(began)
	b.Count("writesEach", s.Sum("written", asked)/fleetSize)
	b.Count("statusWrites", float64(len(asked["patch manifestworkreplicasets/status"])))

	began = s.Mark()
	<-time.After(window)
	b.Count("writesAtRest", s.Sum("at rest", s.Asked(began)))
	b.Memory("hub", s.Memory())
	b.Complete()
}
