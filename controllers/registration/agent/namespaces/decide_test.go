// SPDX-License-Identifier: Apache-2.0

package namespaces

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

var now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// asking is an accepted cluster whose sets request namespaces, given as set/namespace.
func asking(entries ...string) *clusterv1.ManagedCluster {
	c := &clusterv1.ManagedCluster{}
	c.Name, c.Generation = "c1", 4
	c.Status.Conditions = []metav1.Condition{{Type: clusterv1.ConditionHubAccepted, Status: metav1.ConditionTrue}}
	for _, entry := range entries {
		set, name, _ := strings.Cut(entry, "/")
		c.Status.ManagedNamespaces = append(c.Status.ManagedNamespaces, clusterv1.ClusterSetManagedNamespace{
			ClusterSet: set, ManagedNamespaceConfig: clusterv1.ManagedNamespaceConfig{Name: name},
		})
	}
	return c
}

func present(namespaces ...Namespace) map[string]Namespace {
	out := map[string]Namespace{}
	for _, n := range namespaces {
		out[n.Name] = n
	}
	return out
}

func TestLabelKeyIsTheHashCutTo63(t *testing.T) {
	require.Equal(
		t, "clusterset.open-cluster-management.io/"+strings.Repeat("a", 63), labelKey(strings.Repeat("a", 64)),
	)
}

func TestLabels(t *testing.T) {
	deleting := asking("s/a")
	deleting.DeletionTimestamp = &metav1.Time{Time: now}
	denied := asking("s/a")
	denied.Status.Conditions[0].Status = metav1.ConditionFalse
	for name, tc := range map[string]struct {
		cluster *clusterv1.ManagedCluster
		present map[string]Namespace
		want    []Label
	}{
		"a new namespace":      {asking("s/a"), nil, []Label{{"a", "true"}}},
		"two sets ask for one": {asking("s/a", "t/a"), nil, []Label{{"a", "true"}}},
		"one that is labelled": {asking("s/a"), present(Namespace{Name: "a", Label: "true"}), nil},
		"one that comes again": {
			asking("s/a"),
			present(Namespace{Name: "a", Label: "false"}),
			[]Label{{"a", "true"}},
		},
		"another value is set right": {
			asking("s/a"),
			present(Namespace{Name: "a", Label: "x"}),
			[]Label{{"a", "true"}},
		},
		"one that is dropped, the others stay": {
			asking("s/b"),
			present(Namespace{Name: "a", Label: "true"}, Namespace{Name: "b", Label: "true"}),
			[]Label{{"a", "false"}},
		},
		"one that was dropped before": {asking(), present(Namespace{Name: "a", Label: "false"}), nil},
		"the cluster is being deleted": {
			deleting,
			present(Namespace{Name: "a", Label: "true"}),
			[]Label{{"a", "false"}},
		},
		"the cluster is gone":         {nil, present(Namespace{Name: "a", Label: "true"}), []Label{{"a", "false"}}},
		"the cluster is not accepted": {denied, present(Namespace{Name: "a", Label: "true"}), nil},
		"the namespaces of the system are not ours": {
			asking("s/default", "s/kube-system", "s/openshift-x", "s/open-cluster-management-agent", "s/kubernetes"),
			nil,
			[]Label{{"default", "true"}, {"kubernetes", "true"}},
		},
		"a name that no namespace can have": {asking("s/A.b"), nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			require.Empty(t, cmp.Diff(tc.want, labelsToWrite(State{Cluster: tc.cluster, Present: tc.present})))
		})
	}
}

func TestConditionOfEachEntry(t *testing.T) {
	for name, tc := range map[string]struct {
		entry   string
		present map[string]Namespace
		failed  map[string]string
		status  metav1.ConditionStatus
		message string
	}{
		"it is there": {
			"s/a",
			present(Namespace{Name: "a", Label: "true"}),
			nil,
			metav1.ConditionTrue,
			"Namespace exists",
		},
		"it could not be labelled": {
			"s/a",
			nil,
			map[string]string{"a": "quota exceeded"},
			metav1.ConditionFalse,
			"quota exceeded",
		},
		"it is being deleted": {
			"s/a",
			present(Namespace{Name: "a", Label: "true", Terminating: true}),
			nil,
			metav1.ConditionFalse,
			"is being deleted",
		},
		"it is one of the system": {
			"s/kube-system",
			nil,
			nil,
			metav1.ConditionFalse,
			"system namespaces are not managed by sets: kube-*",
		},
		"it is the default one": {
			"s/default",
			present(Namespace{Name: "default", Label: "true"}),
			nil,
			metav1.ConditionTrue,
			"Namespace exists",
		},
		"it is not known yet":       {"s/a", nil, nil, "", ""},
		"it is unwanted by mistake": {"s/a", present(Namespace{Name: "a", Label: "false"}), nil, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := State{Now: now, Cluster: asking(tc.entry), Present: tc.present, Failed: tc.failed}
			next := Decide(s).Object.(*clusterv1.ManagedCluster)
			got := apimeta.FindStatusCondition(
				next.Status.ManagedNamespaces[0].Conditions, clusterv1.ConditionNamespaceAvailable,
			)
			if tc.status == "" {
				require.Nil(t, got)
				return
			}
			require.Equal(t, tc.status, got.Status)
			require.Contains(t, got.Message, tc.message)
			require.EqualValues(t, 4, got.ObservedGeneration)
			want := clusterv1.ReasonNamespaceApplied
			if tc.status == metav1.ConditionFalse {
				want = clusterv1.ReasonNamespaceApplyFailed
			}
			require.Equal(t, want, got.Reason)

			s.Cluster, s.Now = next, now.Add(time.Hour)
			require.Empty(t, cmp.Diff(next, Decide(s).Object), "a second pass changes nothing")
		})
	}
}

func TestNothingIsSaidOfAClusterThatGoesOrIsNotAccepted(t *testing.T) {
	s := State{Now: now, Present: present(Namespace{Name: "a", Label: "true"})}
	require.Equal(t, reconcile.Plan{}, Decide(s))
	s.Cluster = asking("s/a")
	s.Cluster.DeletionTimestamp = &metav1.Time{Time: now}
	require.Equal(t, reconcile.Plan{}, Decide(s))
	s.Cluster = asking("s/a")
	s.Cluster.Status.Conditions = nil
	require.Equal(t, reconcile.Plan{}, Decide(s))
}
