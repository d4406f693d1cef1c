// SPDX-License-Identifier: Apache-2.0

package addonhealth

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

var now = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

const prefix = clusterv1.LabelPrefixFeatureAddOn

func cluster(available metav1.ConditionStatus, labels map[string]string) *clusterv1.ManagedCluster {
	mc := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1", Labels: labels}}
	if available != "" {
		mc.Status.Conditions = []metav1.Condition{
			{Type: clusterv1.ConditionAvailable, Status: available, Reason: "R", Message: "m"},
		}
	}
	return mc
}

func addon(name string, available metav1.ConditionStatus) AddOn {
	a := AddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: name}}
	if available != "" {
		a.Status.Conditions = []metav1.Condition{{
			Type: "Other",
		}, {
			Type:    "Available",
			Status:  available,
			Reason:  "R",
			Message: "m",
		}}
	}
	return a
}

func going(a AddOn) AddOn {
	a.DeletionTimestamp = &metav1.Time{Time: now}
	return a
}

func TestDecideLabels(t *testing.T) {
	long := strings.Repeat("a", 58)
	for name, tc := range map[string]struct {
		cluster *clusterv1.ManagedCluster
		addons  []AddOn
		told    bool
		want    map[string]string
		event   bool
	}{
		"each state has its value; none yet counts as unreachable": {
			cluster: cluster("True", map[string]string{"mine": "x"}),
			addons:  []AddOn{addon("a", "True"), addon("b", "False"), addon("c", "Unknown"), addon("d", "")},
			want: map[string]string{
				"mine":       "x",
				prefix + "a": "available",
				prefix + "b": "unhealthy",
				prefix + "c": "unreachable",
				prefix + "d": "unreachable",
			},
		},
		"an add-on that goes or is gone has none": {
			cluster: cluster("Unknown", map[string]string{
				prefix + "a":                  "available",
				prefix + "b":                  "unhealthy",
				"feature.example.com/addon-a": "x",
			}),
			addons: []AddOn{going(addon("a", "True"))},
			want:   map[string]string{"feature.example.com/addon-a": "x"},
		},
		"a cluster that was never heard of is left alone": {
			cluster: cluster("", map[string]string{prefix + "a": "available"}),
			want:    map[string]string{prefix + "a": "available"},
		},
		"the longest name that a label takes": {
			cluster: cluster("False", nil),
			addons:  []AddOn{addon(long[:57], "True")},
			want:    map[string]string{prefix + long[:57]: "available"},
		},
		"a longer name has no label, and that is reported": {
			cluster: cluster("True", nil),
			addons:  []AddOn{addon(long, "True"), addon("a", "True")},
			want:    map[string]string{prefix + "a": "available"},
			event:   true,
		},
		"it is reported once": {cluster: cluster("True", nil), addons: []AddOn{addon(long, "True")}, told: true},
	} {
		t.Run(name, func(t *testing.T) {
			plan := Decide(State{Cluster: tc.cluster, AddOns: tc.addons, Told: func(string) bool { return tc.told }})
			got := tc.cluster.Labels
			if mc, ok := plan.Object.(*clusterv1.ManagedCluster); ok {
				got = mc.Labels
			}
			require.Equal(t, tc.want, got)
			require.Equal(t, tc.event, len(plan.Events) == 1)
			if tc.event {
				require.Contains(t, plan.Events[0].Message, "has 58 characters, a label allows 57")
			}
		})
	}
}

func TestAClusterThatGoesKeepsItsLabels(t *testing.T) {
	mc := cluster("True", map[string]string{prefix + "a": "available"})
	mc.DeletionTimestamp = &metav1.Time{Time: now}
	require.Nil(t, Decide(State{Cluster: mc}).Object)
}

func TestDecideAway(t *testing.T) {
	same := addon("a", "Unknown")
	other := addon("a", "Unknown")
	other.Status.Conditions[1].Message = "x"
	for name, tc := range map[string]struct {
		cluster *clusterv1.ManagedCluster
		addon   AddOn
		said    time.Time
		copied  bool
		later   time.Duration
	}{
		"an unreachable cluster makes its add-ons unknown": {
			cluster: cluster("Unknown", nil),
			addon:   addon("a", "True"),
			copied:  true,
		},
		"also those that never reported": {
			cluster: cluster("Unknown", nil),
			addon:   addon("a", ""),
			copied:  true,
		},
		"and tells why":                             {cluster: cluster("Unknown", nil), addon: other, copied: true},
		"what is said is not said again":            {cluster: cluster("Unknown", nil), addon: same},
		"False is not copied":                       {cluster: cluster("False", nil), addon: addon("a", "True")},
		"True is not copied":                        {cluster: cluster("True", nil), addon: addon("a", "Unknown")},
		"nor silence":                               {cluster: cluster("", nil), addon: addon("a", "True")},
		"an add-on without a cluster is left alone": {addon: addon("a", "True")},
		"an agent that sets it back is overruled later": {
			cluster: cluster("Unknown", nil),
			addon:   addon("a", "True"),
			said:    now.Add(-3 * time.Second),
			later:   7 * time.Second,
		},
		"but it is overruled": {
			cluster: cluster("Unknown", nil),
			addon:   addon("a", "True"),
			said:    now.Add(-10 * time.Second),
			copied:  true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			condition, later := decideAway(awayState{Cluster: tc.cluster, AddOn: &tc.addon, Said: tc.said, Now: now})
			require.Equal(t, tc.later, later)
			require.Equal(t, tc.copied, condition != nil)
			if tc.copied {
				require.Equal(
					t, metav1.Condition{Type: "Available", Status: "Unknown", Reason: "R", Message: "m"},
					*condition,
				)
			}
		})
	}
}

func TestTrimLeavesWhatIsRead(t *testing.T) {
	a := addon("a", "True")
	a.Annotations = map[string]string{clusterv1.AnnotationCleanupPriority: "20", "x": "y"}
	a.Labels, a.Finalizers, a.ManagedFields = map[string]string{"x": "y"}, []string{"f"}, []metav1.ManagedFieldsEntry{{}}
	kept, err := Trim(&a)
	require.NoError(t, err)
	require.Equal(t, &AddOn{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:   "c1",
			Name:        "a",
			Annotations: map[string]string{clusterv1.AnnotationCleanupPriority: "20"},
		},
		Status: AddOnStatus{Conditions: []metav1.Condition{{Type: "Available", Status: "True"}}},
	}, kept)
	away := addon("b", "Unknown")
	kept, err = Trim(&away)
	require.NoError(t, err)
	require.Equal(t, "m", kept.(*AddOn).available().Message, "what is compared must be kept")
	require.Equal(t, kept, kept.(*AddOn).DeepCopyObject())
	tombstone, err := Trim("x")
	require.NoError(t, err)
	require.Equal(t, "x", tombstone)
}
