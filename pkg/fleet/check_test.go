// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
)

// checkedAt is the time of the checks in these tests.
var checkedAt = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// checkingAt is a run of checks on the hub of context h, at checkedAt.
func checkingAt() *checking {
	o := &CheckOptions{Hub: &Cluster{Context: "h"}}
	o.Clock = clocktesting.NewFakeClock(checkedAt)
	return &checking{o: o, run: &run{common: &o.Common}}
}

// well is a cluster that nothing is wrong with; tests change it.
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

// says gives a condition of a cluster another status and message.
func says(mc *clusterv1.ManagedCluster, kind string, status metav1.ConditionStatus, message string) {
	for i := range mc.Status.Conditions {
		if mc.Status.Conditions[i].Type == kind {
			mc.Status.Conditions[i].Status, mc.Status.Conditions[i].Message = status, message
			return
		}
	}
	mc.Status.Conditions = append(mc.Status.Conditions, metav1.Condition{Type: kind, Status: status, Message: message})
}

func TestEveryStateOfAClusterHasItsFinding(t *testing.T) {
	seen := func(ago time.Duration) func(*ClusterInfo) {
		return func(info *ClusterInfo) { info.LastSeen = &metav1.Time{Time: checkedAt.Add(-ago)} }
	}
	const onSpoke = "kubectl ocm check spoke --context <its context> --hub-context h"
	for name, tc := range map[string]struct {
		cluster func(*clusterv1.ManagedCluster)
		info    func(*ClusterInfo)
		want    []Finding
	}{
		"all is well": {},
		"nobody has answered": {cluster: func(mc *clusterv1.ManagedCluster) {
			mc.Spec.HubAcceptsClient, mc.Status.Conditions = false, nil
		}, want: []Finding{{codeClusterWaits, SeverityWarning, "it asks to join and nobody has answered", "", "kubectl ocm accept c1 --context h"}}},
		"denied": {cluster: func(mc *clusterv1.ManagedCluster) {
			mc.Spec.HubAcceptsClient = false
			says(mc, clusterv1.ConditionHubAccepted, metav1.ConditionFalse, "Denied by\nan admin")
		}, want: []Finding{{codeClusterDenied, SeverityWarning, "it is denied: its agent has no rights", "Denied by an admin", "kubectl ocm accept c1 --context h"}}},
		"its request was denied": {cluster: func(mc *clusterv1.ManagedCluster) {
			says(mc, clusterv1.ConditionJoined, metav1.ConditionFalse, "")
			says(mc, clusterv1.ConditionCertificateRequestDenied, metav1.ConditionTrue, "the token is for c2")
		}, want: []Finding{{codeClusterRequest, SeverityWarning, "it waits for its certificate", "the token is for c2", "kubectl ocm accept c1 --context h"}}},
		"accepted, and silent since": {cluster: func(mc *clusterv1.ManagedCluster) {
			says(mc, clusterv1.ConditionJoined, metav1.ConditionFalse, "")
		}, want: []Finding{{codeClusterJoining, SeverityWarning, "accepted, and its agent has not reported", "", onSpoke}}},
		"late, by the default of a lease": {cluster: func(mc *clusterv1.ManagedCluster) {
			says(mc, clusterv1.ConditionAvailable, metav1.ConditionUnknown, "no heartbeat")
		}, info: seen(6 * time.Minute), want: []Finding{{codeClusterLease, SeverityError, "lease not renewed for 6m (limit 300s)", "no heartbeat", onSpoke}}},
		"late, by a lease of its own": {cluster: func(mc *clusterv1.ManagedCluster) {
			mc.Spec.LeaseDurationSeconds = 10
			says(mc, clusterv1.ConditionAvailable, metav1.ConditionUnknown, "no heartbeat")
		}, info: seen(90 * time.Second), want: []Finding{{codeClusterLease, SeverityError, "lease not renewed for 90s (limit 50s)", "no heartbeat", onSpoke}}},
		"a lease that was never renewed": {cluster: func(mc *clusterv1.ManagedCluster) {
			says(mc, clusterv1.ConditionAvailable, metav1.ConditionUnknown, "")
		}, want: []Finding{{codeClusterLease, SeverityError, "its lease was never renewed", "", onSpoke}}},
		"its API server is sick": {cluster: func(mc *clusterv1.ManagedCluster) {
			says(mc, clusterv1.ConditionAvailable, metav1.ConditionFalse, "etcd is away")
		}, want: []Finding{{codeClusterUnwell, SeverityError, "its API server is not healthy", "etcd is away", onSpoke}}},
		"being deleted, and the hub says what is left": {cluster: func(mc *clusterv1.ManagedCluster) {
			mc.DeletionTimestamp = &metav1.Time{Time: checkedAt.Add(-time.Hour)}
			mc.Finalizers = []string{"example.com/hold"}
			says(mc, clusterv1.ConditionDeleting, metav1.ConditionFalse, "2 works remain")
		}, want: []Finding{{codeClusterLeaves, SeverityWarning, "it is being deleted for 60m", "2 works remain", "kubectl ocm cluster remove c1 --context h --force      if it is gone for good"}}},
		"being deleted, and the hub says nothing": {cluster: func(mc *clusterv1.ManagedCluster) {
			mc.DeletionTimestamp = &metav1.Time{Time: checkedAt.Add(-time.Hour)}
			mc.Finalizers = []string{"example.com/hold", "example.com/more"}
		}, want: []Finding{{codeClusterLeaves, SeverityWarning, "it is being deleted for 60m", "finalizers: example.com/hold, example.com/more", "kubectl ocm cluster remove c1 --context h --force      if it is gone for good"}}},
		"a clock that differs": {cluster: func(mc *clusterv1.ManagedCluster) {
			says(mc, clusterv1.ConditionClockSynced, metav1.ConditionFalse, "off by 10m")
		}, want: []Finding{{codeClusterClock, SeverityWarning, "its clock differs from the hub's", "off by 10m", "set the cluster's clock"}}},
		"another cluster asks under its name": {cluster: func(mc *clusterv1.ManagedCluster) {
			says(mc, clusterv1.ConditionDuplicateClusterName, metav1.ConditionTrue, "agent x\nasks")
		}, want: []Finding{{codeClusterName, SeverityError, "another agent asks under its name", "agent x asks",
			"kubectl ocm accept c1 --replace --context h      if it is the same cluster; if not, join that one under a name of its own"}}},
		"the name was asked for once": {cluster: func(mc *clusterv1.ManagedCluster) {
			says(mc, clusterv1.ConditionDuplicateClusterName, metav1.ConditionFalse, "agent x is gone")
		}},
		"works that fail": {info: func(info *ClusterInfo) { info.Works = Count{Good: 1, Total: 3} },
			want: []Finding{{codeClusterWorks, SeverityWarning, "2 of 3 works are not applied and available", "", "kubectl ocm work list -c c1 --context h"}}},
		"works of a cluster that is away are not told of": {cluster: func(mc *clusterv1.ManagedCluster) {
			says(mc, clusterv1.ConditionAvailable, metav1.ConditionUnknown, "no heartbeat")
		}, info: func(info *ClusterInfo) { info.Works = Count{Good: 1, Total: 3} },
			want: []Finding{{codeClusterLease, SeverityError, "its lease was never renewed", "no heartbeat", onSpoke}}},
		"several things at once": {cluster: func(mc *clusterv1.ManagedCluster) {
			says(mc, clusterv1.ConditionAvailable, metav1.ConditionFalse, "etcd is away")
			says(mc, clusterv1.ConditionClockSynced, metav1.ConditionFalse, "off by 10m")
		}, want: []Finding{
			{codeClusterUnwell, SeverityError, "its API server is not healthy", "etcd is away", onSpoke},
			{codeClusterClock, SeverityWarning, "its clock differs from the hub's", "off by 10m", "set the cluster's clock"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			mc := well()
			if tc.cluster != nil {
				tc.cluster(mc)
			}
			info := (&fleetState{}).info(mc)
			if tc.info != nil {
				tc.info(&info)
			}
			got := checkingAt().cluster(info, mc, map[string]bool{"c1": true})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// An accepted cluster needs its namespace; one that was not accepted has none
// yet, and one that goes may have lost it.
func TestAClusterWithoutItsNamespaceIsToldOf(t *testing.T) {
	missing := func(mc *clusterv1.ManagedCluster, places map[string]bool) []Finding {
		var out []Finding
		for _, f := range checkingAt().cluster((&fleetState{}).info(mc), mc, places) {
			if f.Code == codeClusterRights {
				out = append(out, f)
			}
		}
		return out
	}
	accepted := well()
	says(accepted, clusterv1.ConditionHubAccepted, metav1.ConditionFalse, "namespace c1 belongs to somebody else")
	want := []Finding{{codeClusterRights, SeverityError, "its namespace on the hub is missing or not its own", "namespace c1 belongs to somebody else", "kubectl ocm check hub --context h"}}
	if diff := cmp.Diff(want, missing(accepted, map[string]bool{"c2": true})); diff != "" {
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

func TestTheLifeOfACertificateIsJudged(t *testing.T) {
	const day = 24 * time.Hour
	for name, tc := range map[string]struct {
		// age and left are how long ago it was issued and how long it is good.
		age, left time.Duration
		want      Finding
	}{
		"just issued": {0, 100 * day, Finding{Severity: SeverityOK, Title: "certificate of agent, good for 100d"}},
		// It is renewed when a quarter is left, and late when less than a fifth is.
		"due for renewal":          {76 * day, 24 * day, Finding{Severity: SeverityOK, Title: "certificate of agent, good for 24d"}},
		"a fifth of its life left": {80 * day, 20 * day, Finding{Severity: SeverityOK, Title: "certificate of agent, good for 20d"}},
		"late": {81 * day, 19 * day, Finding{Severity: SeverityWarning, Title: "certificate of agent, good for 19d",
			Cause: "it should have been renewed when a quarter of its life was left, at 2026-11-15T12:00:00Z"}},
		"it runs out now": {100 * day, 0, Finding{Severity: SeverityError, Title: "the agent's certificate ran out 0s ago",
			Cause: "it asks for another, which somebody has to accept", Fix: "kubectl ocm accept c1 --context <hub>"}},
		"over": {103 * day, -3 * day, Finding{Severity: SeverityError, Title: "the agent's certificate ran out 3d ago",
			Cause: "it asks for another, which somebody has to accept", Fix: "kubectl ocm accept c1 --context <hub>"}},
	} {
		t.Run(name, func(t *testing.T) {
			a := &agentCheck{checking: checkingAt(), k: &operatorv1.Klusterlet{Spec: operatorv1.KlusterletSpec{ClusterName: "c1"}}}
			got := a.life(&x509.Certificate{Subject: pkix.Name{CommonName: "agent"}, NotBefore: checkedAt.Add(-tc.age), NotAfter: checkedAt.Add(tc.left)})
			if diff := cmp.Diff([]Finding{tc.want}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
