// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/credential"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

var now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// accepted is an accepted ManagedCluster with further conditions.
func accepted(more ...metav1.Condition) *clusterv1.ManagedCluster {
	c := &clusterv1.ManagedCluster{}
	c.Name, c.Generation = "c1", 3
	c.Status.Conditions = append([]metav1.Condition{
		{Type: clusterv1.ConditionHubAccepted, Status: metav1.ConditionTrue},
	}, more...)
	return c
}

// healthy is the state of a healthy cluster without nodes and claims.
func healthy(c *clusterv1.ManagedCluster) State {
	return State{
		Now:         now,
		Cluster:     c,
		Health:      Health{Checked: now, Code: 200, Version: "v1.36.3"},
		NodesKnown:  true,
		ClaimsKnown: true,
		MaxClaims:   20,
		Credential:  credential.Report{Phase: credential.PhaseServing, Message: "certificate valid until x"},
	}
}

func after(t *testing.T, s State) *clusterv1.ManagedCluster {
	t.Helper()
	p := Decide(s)
	c, ok := p.Object.(*clusterv1.ManagedCluster)
	require.True(t, ok)
	return c
}

func list(pairs ...string) clusterv1.ResourceList {
	out := clusterv1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		out[clusterv1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return out
}

func TestNothingIsReportedBeforeAcceptance(t *testing.T) {
	require.Equal(t, reconcile.Plan{}, Decide(State{Now: now}))
	require.Equal(t, reconcile.Plan{}, Decide(healthy(&clusterv1.ManagedCluster{})))
	c := accepted()
	c.Status.Conditions[0].Status = metav1.ConditionFalse
	require.Equal(t, reconcile.Plan{}, Decide(healthy(c)))
}

func TestHealthyClusterSaysAllOfIt(t *testing.T) {
	s := healthy(accepted())
	s.Nodes = []Node{
		{Capacity: list("cpu", "2", "memory", "4Gi"), Allocatable: list("cpu", "1900m")},
		{Capacity: list("cpu", "500m"), Allocatable: list("cpu", "500m"), Cordoned: true},
	}
	c := after(t, s)
	for _, kind := range []string{
		clusterv1.ConditionJoined, clusterv1.ConditionAvailable, clusterv1.ConditionClusterCertificateRotated,
	} {
		condition := apimeta.FindStatusCondition(c.Status.Conditions, kind)
		require.NotNil(t, condition, kind)
		require.Equal(t, metav1.ConditionTrue, condition.Status, kind)
		require.Equal(t, int64(3), condition.ObservedGeneration, kind)
	}
	require.Equal(t, "v1.36.3", c.Status.Version.Kubernetes)
	require.Empty(t, cmp.Diff(map[string]string{"cpu": "2500m", "memory": "4Gi"}, texts(c.Status.Capacity)))
	require.Empty(t, cmp.Diff(map[string]string{"cpu": "1900m"}, texts(c.Status.Allocatable)))
	require.Empty(
		t,
		cmp.Diff(
			[]reconcile.Event{
				{Type: "Normal", Reason: "Available", Message: "Managed cluster is available", Namespace: "c1"},
			},
			Decide(s).Events,
		),
	)

	// An unchanged status is not written again.
	s.Cluster = c
	again := Decide(s)
	require.Empty(t, cmp.Diff(c, again.Object))
	require.Empty(t, again.Events)
}

func texts(l clusterv1.ResourceList) map[string]string {
	out := map[string]string{}
	for name, q := range l {
		out[string(name)] = q.String()
	}
	return out
}

func TestResources(t *testing.T) {
	for name, tc := range map[string]struct {
		before      clusterv1.ResourceList
		nodes       []Node
		known       bool
		capacity    map[string]string
		allocatable map[string]string
	}{
		"capacity that no node has and others wrote is kept, allocatable is not": {
			list("gpu", "1"),
			[]Node{{Capacity: list("cpu", "1")}},
			true,
			map[string]string{"gpu": "1", "cpu": "1"},
			map[string]string{},
		},
		"capacity that no node has any more and this loop wrote goes": {
			list("ours.example.com/fpga", "4", "cpu", "2"),
			[]Node{{Capacity: list("cpu", "1")}},
			true,
			map[string]string{"cpu": "1"},
			map[string]string{},
		},
		"all nodes cordoned: nothing is allocatable": {
			nil,
			[]Node{{Capacity: list("cpu", "1"), Allocatable: list("cpu", "1"), Cordoned: true}},
			true,
			map[string]string{"cpu": "1"},
			map[string]string{},
		},
		"before the nodes are listed everything stays": {
			list("cpu", "8"),
			nil,
			false,
			map[string]string{"cpu": "8"},
			map[string]string{"cpu": "8"},
		},
		"the same amount in another form is no change": {
			list("cpu", "1000m"),
			[]Node{{Capacity: list("cpu", "1"), Allocatable: list("cpu", "1")}},
			true,
			map[string]string{"cpu": "1"},
			map[string]string{"cpu": "1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := healthy(accepted())
			s.Cluster.Status.Capacity, s.Cluster.Status.Allocatable = tc.before, tc.before
			s.Cluster.ManagedFields = []metav1.ManagedFieldsEntry{
				fields(
					"ocm.registration.status", `{"f:status":{"f:capacity":{"f:cpu":{},"f:ours.example.com/fpga":{}}}}`,
				),
				fields("somebody", `{"f:status":{"f:capacity":{"f:gpu":{}}}}`),
				fields("ocm.registration.status", `no JSON`),
			}
			s.Nodes, s.NodesKnown = tc.nodes, tc.known
			c := after(t, s)
			require.Empty(t, cmp.Diff(tc.capacity, texts(c.Status.Capacity)))
			require.Empty(t, cmp.Diff(tc.allocatable, texts(c.Status.Allocatable)))
		})
	}
}

func TestAvailability(t *testing.T) {
	was := metav1.Condition{
		Type:   clusterv1.ConditionAvailable,
		Status: metav1.ConditionTrue,
		Reason: "ManagedClusterAvailable",
	}
	for name, tc := range map[string]struct {
		health Health
		want   metav1.ConditionStatus
		event  string
	}{
		"not probed yet: the condition stays": {Health{}, metav1.ConditionTrue, ""},
		"fails for less than 20 s: what was stays": {
			Health{Checked: now, FailingSince: now.Add(-19 * time.Second), Code: 500, Problem: "etcd failed"},
			metav1.ConditionTrue,
			"",
		},
		"fails for 20 s: not available": {
			Health{Checked: now, FailingSince: now.Add(-20 * time.Second), Code: 500, Problem: "etcd failed"},
			metav1.ConditionFalse,
			"Unavailable",
		},
		"no answer for long: not available, code 0": {
			Health{Checked: now, FailingSince: now.Add(-time.Hour), Problem: "connection refused"},
			metav1.ConditionFalse,
			"Unavailable",
		},
		"healthy again": {Health{Checked: now, Code: 200}, metav1.ConditionTrue, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := healthy(accepted(was))
			s.Health = tc.health
			s.Claims = []Claim{{Name: "a", Value: "b"}}
			c := after(t, s)
			got := apimeta.FindStatusCondition(c.Status.Conditions, clusterv1.ConditionAvailable)
			require.Equal(t, tc.want, got.Status)
			if tc.want == metav1.ConditionFalse {
				require.Equal(t, clusterv1.ReasonManagedClusterKubeAPIServerUnavailable, got.Reason)
				require.Contains(t, got.Message, fmt.Sprintf("status code: %d, %s", tc.health.Code, tc.health.Problem))
			}
			if !tc.health.Healthy() {
				require.Empty(t, c.Status.ClusterClaims, "an unhealthy cluster reports nothing else")
			}
			events := Decide(s).Events
			if tc.event == "" {
				require.Empty(t, events)
				return
			}
			require.Equal(t, tc.event, events[0].Reason)
			require.Equal(t, "Warning", events[0].Type)
		})
	}
}

func TestUnknownTurnsAvailableWithAnEvent(t *testing.T) {
	s := healthy(accepted(metav1.Condition{Type: clusterv1.ConditionAvailable, Status: metav1.ConditionUnknown}))
	require.Equal(t, "Available", Decide(s).Events[0].Reason)
}

func TestCertificateCondition(t *testing.T) {
	for name, tc := range map[string]struct {
		report credential.Report
		want   metav1.ConditionStatus
	}{
		"valid": {credential.Report{Phase: credential.PhaseServing}, metav1.ConditionTrue},
		"the renewal was denied": {
			credential.Report{Phase: credential.PhaseServing, Renewal: credential.PhaseDenied},
			metav1.ConditionFalse,
		},
		"the renewal is throttled": {
			credential.Report{Phase: credential.PhaseServing, Renewal: credential.PhaseThrottled},
			metav1.ConditionFalse,
		},
		"a renewal under way is no news": {
			credential.Report{Phase: credential.PhaseServing, Renewal: credential.PhaseWaiting},
			"",
		},
		"nothing to say while access is off": {credential.Report{Phase: credential.PhaseConnecting}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := healthy(accepted())
			s.Credential = tc.report
			got := apimeta.FindStatusCondition(
				after(t, s).Status.Conditions, clusterv1.ConditionClusterCertificateRotated,
			)
			if tc.want == "" {
				require.Nil(t, got)
				return
			}
			require.Equal(t, tc.want, got.Status)
		})
	}
}

func TestWrongClockDoesNotStopTheReport(t *testing.T) {
	s := healthy(accepted(metav1.Condition{Type: clusterv1.ConditionClockSynced, Status: metav1.ConditionFalse}))
	require.True(t, apimeta.IsStatusConditionTrue(after(t, s).Status.Conditions, clusterv1.ConditionAvailable))
}

func fields(manager, owned string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{Manager: manager, Subresource: "status", FieldsV1: metav1.NewFieldsV1(owned)}
}

func TestOnlyTheOwnFieldsAreKept(t *testing.T) {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetManagedFields([]metav1.ManagedFieldsEntry{
		{Manager: "ocm.registration.status"}, fields("hub", "{}"), fields("ocm.registration.status", `{"f:status":{}}`),
	})
	KeepOwnFields(u)
	require.Len(t, u.GetManagedFields(), 1)
	require.Equal(t, "ocm.registration.status", u.GetManagedFields()[0].Manager)
	require.Equal(t, "status", u.GetManagedFields()[0].Subresource)
}

func TestAnOutageIsToldOnceThoughItsWordsChange(t *testing.T) {
	s := healthy(accepted())
	down := func(code int, problem string) {
		s.Health = Health{Checked: now, FailingSince: now.Add(-time.Minute), Code: code, Problem: problem}
		s.Cluster = after(t, s)
	}
	said := func() string {
		return apimeta.FindStatusCondition(s.Cluster.Status.Conditions, clusterv1.ConditionAvailable).Message
	}
	down(0, "read tcp 10.0.0.1:4711: connection reset")
	down(0, "read tcp 10.0.0.1:4712: connection reset")
	require.Equal(t, "The kube-apiserver is not ok, status code: 0, read tcp 10.0.0.1:4711: connection reset", said())
	down(500, "etcd failed")
	require.Equal(t, "The kube-apiserver is not ok, status code: 500, etcd failed", said(), "another code is reported")
	s.Health = Health{Checked: now, Code: 200}
	s.Cluster = after(t, s)
	require.Equal(t, "Managed cluster is available", said())
}

func TestManyEventsInsideTheWindowDoNotFlipAvailability(t *testing.T) {
	s := healthy(accepted(metav1.Condition{
		Type:   clusterv1.ConditionAvailable,
		Status: metav1.ConditionTrue,
		Reason: "ManagedClusterAvailable",
	}))
	s.Health = Health{Checked: now.Add(10 * time.Second), FailingSince: now, Code: 500}
	for i := range 1000 {
		// Passes for other reasons come at any time; only the probes count.
		s.Now = now.Add(time.Duration(i) * time.Second)
		s.Cluster = after(t, s)
		require.True(t, apimeta.IsStatusConditionTrue(s.Cluster.Status.Conditions, clusterv1.ConditionAvailable))
	}
}
