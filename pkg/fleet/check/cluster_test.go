// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/yaml"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/cluster"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/hub"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/placement"
)

// checkedAt is the time of the checks in these tests.
var checkedAt = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// checkingAt is a run of checks on the hub of context h, at checkedAt.
func checkingAt() *checking {
	o := &Options{Hub: atHub}
	o.Clock = clocktesting.NewFakeClock(checkedAt)
	return &checking{o: o, run: &fleet.Run{Given: &o.Common}}
}

// atHub is the hub of these checks.
var atHub = &fleet.Cluster{Context: "h"}

// byContext compares clusters in fixes; nil is a cluster without a context.
var byContext = cmp.Comparer(func(a, b *fleet.Cluster) bool {
	named := func(c *fleet.Cluster) string {
		if c == nil {
			return ""
		}
		return c.Context
	}
	return named(a) == named(b)
})

// onSpoke is a run of checks on a cluster whose context has no name.
func onSpoke() *checking {
	c := checkingAt()
	c.o.Hub, c.o.Spoke = nil, &fleet.Cluster{}
	return c
}

// well is a healthy cluster; tests change it.
func well() *clusterv1.ManagedCluster {
	mc := &clusterv1.ManagedCluster{}
	mc.Name = "c1"
	mc.Spec.HubAcceptsClient = true
	mc.Status.Conditions = []metav1.Condition{
		{Type: clusterv1.ConditionHubAccepted, Status: metav1.ConditionTrue},
		{Type: clusterv1.ConditionJoined, Status: metav1.ConditionTrue},
		{Type: clusterv1.ConditionAvailable, Status: metav1.ConditionTrue},
		{Type: clusterv1.ConditionClockSynced, Status: metav1.ConditionTrue},
	}
	return mc
}

// says sets the status and message of a condition of a cluster.
func says(mc *clusterv1.ManagedCluster, kind string, status metav1.ConditionStatus, message string) {
	for i := range mc.Status.Conditions {
		if mc.Status.Conditions[i].Type == kind {
			mc.Status.Conditions[i].Status, mc.Status.Conditions[i].Message = status, message
			return
		}
	}
	mc.Status.Conditions = append(mc.Status.Conditions, metav1.Condition{Type: kind, Status: status, Message: message})
}

// fleetOf is cluster c1 alone, whose lease arrived 40 seconds ago, with its namespace, the set
// prod, and works.
func fleetOf(t *testing.T, works ...string) *fleetState {
	t.Helper()
	object := func(text string) unstructured.Unstructured {
		var u unstructured.Unstructured
		require.NoError(t, yaml.Unmarshal([]byte(text), &u.Object))
		return u
	}
	beat := object(`{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: managed-cluster-lease}, spec: {renewTime: "2026-11-21T11:59:20.000000Z"}}`)
	out := &fleetState{State: &cluster.State{Now: checkedAt, Leases: map[string][]unstructured.Unstructured{"c1": {beat}}},
		places: map[string]bool{"c1": true}, sets: map[string]bool{"prod": true}}
	for _, text := range works {
		if out.Works == nil {
			out.Works = map[string][]unstructured.Unstructured{}
		}
		out.Works["c1"] = append(out.Works["c1"], object(text))
	}
	return out
}

const workOf = `{apiVersion: work.open-cluster-management.io/v1, kind: ManifestWork, metadata: {name: %s, namespace: c1, generation: 1%s}, ` +
	`spec: {workload: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}]}}%s}`

func badWork(name, why string) string {
	return fmt.Sprintf(workOf, name, "", `, status: {conditions: [{type: Applied, status: "False", observedGeneration: 1}], resourceStatus: {manifests: [`+
		`{resourceMeta: {kind: ConfigMap, name: a}, conditions: [{type: Applied, status: "False", message: "`+why+`"}]}]}}`)
}

func newWork(name, created string) string {
	return fmt.Sprintf(workOf, name, `, creationTimestamp: "`+created+`"`, "")
}

func goingWork(name, since string) string {
	return fmt.Sprintf(workOf, name, `, finalizers: [example.com/hold], deletionTimestamp: "`+since+`"`, "")
}

func sameWorks(names ...string) []Finding {
	var out []Finding
	for _, name := range names {
		out = append(out, Finding{CodeClusterWorks, SeverityWarning,
			"work " + name + " is not applied, 0 of 1 objects are healthy",
			"configmap/a: Applied=False: x", ShowTree.On(atHub, "work", name, "cluster", "c1")})
	}
	return out
}

func TestEveryStateOfAClusterHasItsFinding(t *testing.T) {
	seen := func(ago time.Duration) func(*cluster.Info) {
		return func(info *cluster.Info) { info.LastSeen = &metav1.Time{Time: checkedAt.Add(-ago)} }
	}
	onSpoke := CheckSpoke.With("context", "", "hub", "h")
	for name, tc := range map[string]struct {
		cluster func(*clusterv1.ManagedCluster)
		info    func(*cluster.Info)
		works   []string
		hub     string
		want    []Finding
	}{
		"all is well": {},
		"its request has no answer": {
			cluster: func(mc *clusterv1.ManagedCluster) {
				mc.Spec.HubAcceptsClient, mc.Status.Conditions = false, nil
			},
			want: []Finding{{CodeClusterWaits, SeverityWarning, "it asks to join and waits for an answer", "",
				fleet.AcceptCluster.On(atHub, "cluster", "c1")}},
		},
		"denied": {cluster: func(mc *clusterv1.ManagedCluster) {
			mc.Spec.HubAcceptsClient = false
			says(mc, clusterv1.ConditionHubAccepted, metav1.ConditionFalse, "Denied by\nan admin")
		}, want: []Finding{{CodeClusterDenied, SeverityWarning, "it is denied: its agent has no rights", "Denied by an admin",
			fleet.AcceptAndWait.On(atHub, "cluster", "c1")}}},
		"its request was denied": {cluster: func(mc *clusterv1.ManagedCluster) {
			says(mc, clusterv1.ConditionJoined, metav1.ConditionFalse, "")
			says(mc, clusterv1.ConditionCertificateRequestDenied, metav1.ConditionTrue, "the token is for c2")
		}, want: []Finding{{CodeClusterRequest, SeverityWarning, "it waits for its certificate", "the token is for c2",
			fleet.AcceptAndWait.On(atHub, "cluster", "c1")}}},
		"accepted, and silent since": {cluster: func(mc *clusterv1.ManagedCluster) {
			says(mc, clusterv1.ConditionJoined, metav1.ConditionFalse, "")
		}, want: []Finding{{CodeClusterJoining, SeverityWarning, "accepted, but its agent has not reported", "", onSpoke}}},
		"late, by the default of a lease": {
			cluster: func(mc *clusterv1.ManagedCluster) {
				says(mc, clusterv1.ConditionAvailable, metav1.ConditionUnknown, "no heartbeat")
			},
			info: seen(6 * time.Minute),
			want: []Finding{{CodeClusterLease, SeverityError, "lease not renewed for 6m (limit 300s)", "no heartbeat", onSpoke}},
		},
		"late, by a lease of its own": {
			cluster: func(mc *clusterv1.ManagedCluster) {
				mc.Spec.LeaseDurationSeconds = 10
				says(mc, clusterv1.ConditionAvailable, metav1.ConditionUnknown, "no heartbeat")
			},
			info: seen(90 * time.Second),
			want: []Finding{{CodeClusterLease, SeverityError, "lease not renewed for 90s (limit 50s)", "no heartbeat", onSpoke}},
		},
		"a lease that was never renewed": {
			info: func(info *cluster.Info) { info.LastSeen = nil },
			cluster: func(mc *clusterv1.ManagedCluster) {
				says(mc, clusterv1.ConditionAvailable, metav1.ConditionUnknown, "")
			},
			want: []Finding{{CodeClusterLease, SeverityError, "its lease was never renewed", "", onSpoke}},
		},
		"its API server is sick": {cluster: func(mc *clusterv1.ManagedCluster) {
			says(mc, clusterv1.ConditionAvailable, metav1.ConditionFalse, "etcd is away")
		}, want: []Finding{{CodeClusterUnwell, SeverityError, "its API server is not healthy", "etcd is away", onSpoke}}},
		"being deleted, and the hub says what is left": {cluster: func(mc *clusterv1.ManagedCluster) {
			mc.DeletionTimestamp = &metav1.Time{Time: checkedAt.Add(-time.Hour)}
			mc.Finalizers = []string{"example.com/hold"}
			says(mc, clusterv1.ConditionDeleting, metav1.ConditionFalse, "2 works remain")
		}, want: []Finding{{CodeClusterLeaves, SeverityWarning, "it is being deleted for 60m", "2 works remain",
			RemoveGone.On(atHub, "cluster", "c1")}}},
		"being deleted, and the hub says nothing": {
			cluster: func(mc *clusterv1.ManagedCluster) {
				mc.DeletionTimestamp = &metav1.Time{Time: checkedAt.Add(-time.Hour)}
				mc.Finalizers = []string{"example.com/hold", "example.com/more"}
			},
			want: []Finding{{CodeClusterLeaves, SeverityWarning, "it is being deleted for 60m",
				"finalizers: example.com/hold, example.com/more",
				RemoveGone.On(atHub, "cluster", "c1")}},
		},
		"a clock that differs": {
			cluster: func(mc *clusterv1.ManagedCluster) {
				says(mc, clusterv1.ConditionClockSynced, metav1.ConditionFalse, "off by 10m")
			},
			want: []Finding{{CodeClusterClock, SeverityWarning, "its clock differs from the hub's", "off by 10m",
				fleet.Advice("set the cluster's clock")}},
		},
		"another cluster asks under its name": {cluster: func(mc *clusterv1.ManagedCluster) {
			says(mc, clusterv1.ConditionDuplicateClusterName, metav1.ConditionTrue, "agent x\nasks")
		}, want: []Finding{{CodeClusterName, SeverityError, "another agent asks under its name", "agent x asks",
			AcceptAnew.On(atHub, "cluster", "c1")}}},
		"the name was asked for once": {cluster: func(mc *clusterv1.ManagedCluster) {
			says(mc, clusterv1.ConditionDuplicateClusterName, metav1.ConditionFalse, "agent x is gone")
		}},
		"a work that is not applied": {works: []string{badWork("web", "is refused")},
			want: []Finding{{CodeClusterWorks, SeverityWarning, "work web is not applied, 0 of 1 objects are healthy",
				"configmap/a: Applied=False: is refused", ShowTree.On(atHub, "work", "web", "cluster", "c1")}}},
		"works that the agent has not answered, and a new one": {
			works: []string{newWork("old", "2026-11-21T11:00:00Z"), newWork("new", "2026-11-21T11:59:50Z")},
			want: []Finding{{CodeClusterWorks, SeverityWarning,
				"work old is not applied: its agent has not answered generation 1", "",
				ShowTree.On(atHub, "work", "old", "cluster", "c1")}},
		},
		"works whose deletion hangs, and one whose deletion has begun": {
			works: []string{goingWork("old", "2026-11-21T11:00:00Z"),
				goingWork("new", "2026-11-21T11:59:50Z")},
			want: []Finding{{CodeClusterWorks, SeverityWarning, "work old is being deleted for 60m",
				"finalizers of others hold it: example.com/hold",
				fleet.ShowWorks.On(atHub, "work", "old", "cluster", "c1")}},
		},
		"more works fail than are named": {
			works: []string{badWork("a", "x"), badWork("b", "x"), badWork("c", "x"), badWork("d", "x"), badWork("e", "x"),
				badWork("f", "x"), badWork("g", "x")},
			want: append(sameWorks("a", "b", "c", "d", "e"),
				Finding{CodeClusterWorks, SeverityWarning, "2 more works of it are unhealthy", "",
					fleet.ShowWorks.On(atHub, "work", "", "cluster", "c1")}),
		},
		"works of a cluster that is away are not reported": {
			cluster: func(mc *clusterv1.ManagedCluster) {
				says(mc, clusterv1.ConditionAvailable, metav1.ConditionUnknown, "no heartbeat")
			},
			works: []string{badWork("web", "is refused")},
			info:  seen(0),
			want: []Finding{{CodeClusterLease, SeverityError, "lease not renewed for 0s (limit 300s)", "no heartbeat",
				onSpoke}},
		},
		"the hub goes on to call it available, and its lease is old": {
			cluster: func(mc *clusterv1.ManagedCluster) { mc.Spec.LeaseDurationSeconds = 1 },
			want: []Finding{{CodeClusterLease, SeverityError, "the hub does not monitor it",
				"lease not renewed for 40s (limit 5s), and the hub has not noticed it", fleet.CheckHub.On(atHub)}},
		},
		"its set is not there": {
			cluster: func(mc *clusterv1.ManagedCluster) { mc.Labels = map[string]string{clusterv1.LabelClusterSet: "nosuch"} },
			want: []Finding{{CodeClusterSet, SeverityWarning, "it is in the cluster set nosuch, which does not exist",
				"its label " + clusterv1.LabelClusterSet +
					" names it",
				placement.CreateSet.On(atHub, "set", "nosuch")}},
		},
		"its set is there": {
			cluster: func(mc *clusterv1.ManagedCluster) { mc.Labels = map[string]string{clusterv1.LabelClusterSet: "prod"} },
		},
		"its agent is older by two minor releases": {
			hub:  "v0.3.0",
			info: func(info *cluster.Info) { info.AgentVersion = "v0.1.9" },
		},
		"its agent is older by three": {
			hub:  "v0.4.0",
			info: func(info *cluster.Info) { info.AgentVersion = "v0.1.9" },
			want: []Finding{{CodeClusterVersion, SeverityError, "its agent is v0.1.9, which the hub, v0.4.0, does not work with", hub.FittingText,
				hub.UpgradeAgent.With("cluster", "c1", "context", "")}},
		},
		"its agent is newer by a patch": {
			hub:  "v0.3.0",
			info: func(info *cluster.Info) { info.AgentVersion = "v0.3.4" },
		},
		"its agent does not report its version": {hub: "v0.3.0"},
		"several things at once": {
			cluster: func(mc *clusterv1.ManagedCluster) {
				says(mc, clusterv1.ConditionAvailable, metav1.ConditionFalse, "etcd is away")
				says(mc, clusterv1.ConditionClockSynced, metav1.ConditionFalse, "off by 10m")
			},
			want: []Finding{
				{CodeClusterUnwell, SeverityError, "its API server is not healthy", "etcd is away", onSpoke},
				{
					CodeClusterClock,
					SeverityWarning,
					"its clock differs from the hub's",
					"off by 10m",
					fleet.Advice("set the cluster's clock"),
				},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			mc := well()
			if tc.cluster != nil {
				tc.cluster(mc)
			}
			all := fleetOf(t, tc.works...)
			all.hub = tc.hub
			info := all.Info(mc)
			if tc.info != nil {
				tc.info(&info)
			}
			got := checkingAt().cluster(t.Context(), info, mc, all)
			if diff := cmp.Diff(tc.want, got, byContext); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// An accepted cluster needs its namespace; one that was not accepted has none yet, and one
// that is being deleted may have lost it.
func TestAClusterWithoutItsNamespaceIsToldOf(t *testing.T) {
	missing := func(mc *clusterv1.ManagedCluster, places map[string]bool) []Finding {
		var out []Finding
		all := fleetOf(t)
		all.places = places
		for _, f := range checkingAt().cluster(t.Context(), all.Info(mc), mc, all) {
			if f.Code == CodeClusterRights {
				out = append(out, f)
			}
		}
		return out
	}
	accepted := well()
	says(accepted, clusterv1.ConditionHubAccepted, metav1.ConditionFalse, "namespace c1 belongs to somebody else")
	want := []Finding{{CodeClusterRights, SeverityError, "its namespace on the hub is missing or not its own",
		"namespace c1 belongs to somebody else",
		fleet.CheckHub.On(atHub)}}
	if diff := cmp.Diff(want, missing(accepted, map[string]bool{"c2": true}), byContext); diff != "" {
		t.Error(diff)
	}
	waiting, going := well(), well()
	waiting.Spec.HubAcceptsClient = false
	going.DeletionTimestamp = &metav1.Time{Time: checkedAt}
	for name, mc := range map[string]*clusterv1.ManagedCluster{"waiting": waiting, "going": going} {
		if got := missing(mc, nil); len(got) > 0 {
			t.Errorf("%s: %v", name, got)
		}
	}
}
