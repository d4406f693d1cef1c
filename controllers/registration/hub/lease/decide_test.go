// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

var now = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) time.Time { return now.Add(-d) }

func TestDecide(t *testing.T) {
	expired := map[string]string{clusterv1.AnnotationCertificateExpires: ago(time.Hour).Format(time.RFC3339)}
	living := map[string]string{clusterv1.AnnotationCertificateExpires: ago(-time.Hour).Format(time.RFC3339)}
	skip := map[string]string{clusterv1.AnnotationSkipClockSyncCheck: "true"}
	for name, tc := range map[string]struct {
		beat        *Beat
		missed      time.Time
		annotations map[string]string
		deleting    bool
		have        []metav1.Condition
		available   metav1.ConditionStatus
		clock       metav1.ConditionStatus
		joined      metav1.ConditionStatus
		event       bool
	}{
		"without a lease nothing is reported":          {},
		"a deleted cluster without a lease is unknown": {deleting: true, available: "Unknown", event: true},
		"a cluster that just lost its lease is given time": {
			missed:    ago(299 * time.Second),
			have:      []metav1.Condition{{Type: clusterv1.ConditionAvailable, Status: "True"}},
			available: "True",
		},
		"a cluster whose lease cannot be made is unknown": {
			missed:    ago(300 * time.Second),
			have:      []metav1.Condition{{Type: clusterv1.ConditionAvailable, Status: "True"}},
			available: "Unknown",
			event:     true,
		},
		"a lease without a renewal counts from when it was seen": {
			beat: &Beat{Arrived: ago(299 * time.Second), First: true},
		},
		"and expires like every other": {
			beat:      &Beat{Arrived: ago(300 * time.Second), First: true},
			available: "Unknown",
			event:     true,
		},
		"a renewal that was taken back": {
			beat:  &Beat{Arrived: ago(time.Second)},
			have:  []metav1.Condition{{Type: clusterv1.ConditionClockSynced, Status: "True"}},
			clock: "True",
		},
		"a renewal in the year 9999": {
			beat:  &Beat{Renewed: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC), Arrived: now},
			clock: "False",
		},
		"a renewal in the year 2": {
			beat:  &Beat{Renewed: time.Date(2, 1, 1, 0, 0, 0, 0, time.UTC), Arrived: now},
			clock: "False",
		},
		"a fresh renewal": {beat: &Beat{Renewed: ago(time.Minute), Arrived: ago(time.Minute)}, clock: "True"},
		"a renewal just before the end": {
			beat:  &Beat{Renewed: ago(299 * time.Second), Arrived: ago(299 * time.Second)},
			clock: "True",
		},
		"a renewal that is too long ago": {
			beat:      &Beat{Renewed: ago(300 * time.Second), Arrived: ago(300 * time.Second)},
			clock:     "True",
			available: "Unknown",
			event:     true,
		},
		"the clock is behind, but the cluster is there": {
			beat:  &Beat{Renewed: ago(time.Hour), Arrived: ago(time.Second)},
			clock: "False",
		},
		"the clock is ahead, and the cluster is away": {
			beat:      &Beat{Renewed: ago(-time.Hour), Arrived: ago(time.Hour)},
			clock:     "False",
			available: "Unknown",
			event:     true,
		},
		"the clock is not to be checked": {
			beat:        &Beat{Renewed: ago(time.Hour), Arrived: ago(time.Second)},
			annotations: skip,
			clock:       "True",
		},
		"the first sight of a fresh lease": {beat: &Beat{Renewed: ago(250 * time.Second), Arrived: now, First: true}},
		"the first sight of an old lease": {
			beat:      &Beat{Renewed: ago(301 * time.Second), Arrived: now, First: true},
			available: "Unknown",
			event:     true,
		},
		"the first sight after an outage in which no cluster could renew": {
			beat: &Beat{Renewed: ago(500 * time.Second), Arrived: now, First: true, Away: 450 * time.Second}},
		"the first sight of one that was silent before an outage": {
			beat:      &Beat{Renewed: ago(500 * time.Second), Arrived: now, First: true, Away: 100 * time.Second},
			available: "Unknown",
			event:     true,
		},
		"the first sight of a lease from the future": {
			beat:  &Beat{Renewed: ago(-time.Hour), Arrived: now, First: true},
			clock: "False",
		},
		"an unknown cluster stays unknown without event": {
			beat: &Beat{Renewed: ago(time.Hour), Arrived: ago(time.Hour)},
			have: []metav1.Condition{
				{
					Type:   clusterv1.ConditionAvailable,
					Status: "Unknown",
					Reason: clusterv1.ReasonManagedClusterLeaseUpdateStopped,
				},
			},
			clock:     "True",
			available: "Unknown",
		},
		"an available cluster is left to its agent": {
			beat:      &Beat{Renewed: now, Arrived: now},
			have:      []metav1.Condition{{Type: clusterv1.ConditionAvailable, Status: "True"}},
			clock:     "True",
			available: "True",
		},
		"away for longer than its certificate": {
			beat:        &Beat{Renewed: ago(2 * time.Hour), Arrived: ago(2 * time.Hour)},
			annotations: expired,
			have:        []metav1.Condition{{Type: clusterv1.ConditionJoined, Status: "True"}},
			clock:       "True",
			available:   "Unknown",
			joined:      "False",
			event:       true,
		},
		"away while its certificate lives": {
			beat:        &Beat{Renewed: ago(2 * time.Hour), Arrived: ago(2 * time.Hour)},
			annotations: living,
			have:        []metav1.Condition{{Type: clusterv1.ConditionJoined, Status: "True"}},
			clock:       "True",
			available:   "Unknown",
			joined:      "True",
			event:       true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			mc := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1", Annotations: tc.annotations}}
			mc.Status.Conditions = tc.have
			if tc.deleting {
				mc.DeletionTimestamp = &metav1.Time{Time: now}
			}
			plan := Decide(State{Cluster: mc, Beat: tc.beat, Missed: tc.missed, Now: now})
			got, ok := plan.Object.(*clusterv1.ManagedCluster)
			if !ok {
				got = mc
			}
			status := func(kind string) metav1.ConditionStatus {
				if c := apimeta.FindStatusCondition(got.Status.Conditions, kind); c != nil {
					return c.Status
				}
				return ""
			}
			require.Equal(t, tc.available, status(clusterv1.ConditionAvailable))
			require.Equal(t, tc.clock, status(clusterv1.ConditionClockSynced))
			require.Equal(t, tc.joined, status(clusterv1.ConditionJoined))
			require.Equal(t, tc.event, len(plan.Events) == 1)
			if tc.event {
				require.Equal(t, "registration-controller", plan.Events[0].Reporter)
			}
		})
	}
}

func TestGraceFollowsTheCluster(t *testing.T) {
	mc := &clusterv1.ManagedCluster{}
	require.Equal(t, 300*time.Second, Grace(mc))
	mc.Spec.LeaseDurationSeconds = -7
	require.Equal(t, 300*time.Second, Grace(mc))
	mc.Spec.LeaseDurationSeconds = 2
	require.Equal(t, 10*time.Second, Grace(mc))
	mc.Spec.LeaseDurationSeconds = math.MaxInt32
	require.Equal(t, 10*365*24*time.Hour, Grace(mc), "five times the maximum would overflow")
}

func TestWhoContradictsIsNotContradictedAtOnce(t *testing.T) {
	mc := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1"}}
	mc.Status.Conditions = []metav1.Condition{{Type: clusterv1.ConditionAvailable, Status: "True"}}
	s := State{
		Cluster: mc,
		Beat:    &Beat{Renewed: ago(time.Hour), Arrived: ago(time.Hour)},
		Told:    ago(4 * time.Second),
		Now:     now,
	}
	plan := Decide(s)
	require.Equal(t, metav1.ConditionTrue, available(plan.Object.(*clusterv1.ManagedCluster)))
	require.Empty(t, plan.Events)
	require.Equal(t, 6*time.Second, plan.RequeueAfter)
	s.Told = ago(10 * time.Second)
	plan = Decide(s)
	require.Equal(t, metav1.ConditionUnknown, available(plan.Object.(*clusterv1.ManagedCluster)))
	require.Zero(t, plan.RequeueAfter)
}

func TestTheWheelCallsEachNameOnceWhenItIsDue(t *testing.T) {
	clk := clocktesting.NewFakeClock(now)
	w := newWheel(clk)
	w.Set("soon", now.Add(2*time.Second))
	w.Set("moved", now.Add(2*time.Second))
	w.Set("moved", now.Add(10*time.Second))
	w.Set("dropped", now.Add(2*time.Second))
	w.Drop("dropped")
	w.Drop("never set")
	w.Set("past", now.Add(-time.Hour))
	clk.Step(time.Second)
	require.Equal(t, []string{"past"}, w.takeDue())
	clk.Step(2 * time.Second)
	require.Equal(t, []string{"soon"}, w.takeDue())
	clk.Step(10 * time.Second)
	require.Equal(t, []string{"moved"}, w.takeDue())
	require.Empty(t, w.takeDue())
	require.Empty(t, w.due)
}

func TestTheWheelTurnsOnWhenTheClockIsSetBack(t *testing.T) {
	clk := clocktesting.NewFakeClock(now)
	w := newWheel(clk)
	w.Set("a", now.Add(time.Minute))
	clk.SetTime(now.Add(-time.Hour))
	require.Equal(t, []string{"a"}, w.takeDue(), "it is due again")
	w.Set("a", clk.Now().Add(2*time.Second))
	clk.Step(time.Second)
	require.Empty(t, w.takeDue())
	clk.Step(2 * time.Second)
	require.Equal(t, []string{"a"}, w.takeDue())
	require.Empty(t, w.due)
}

func TestTheWheelRunsByItsClock(t *testing.T) {
	clk := clocktesting.NewFakeClock(now)
	w := newWheel(clk)
	w.Set("a", now.Add(time.Second))
	ctx, cancel := context.WithCancel(t.Context())
	rung := make(chan string, 1)
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx, func(name string) { rung <- name }) }()
	require.Eventually(t, clk.HasWaiters, time.Minute, time.Millisecond)
	clk.Step(3 * time.Second)
	require.Equal(t, "a", <-rung)
	cancel()
	require.NoError(t, <-done)
}

func leaseOf(cluster string, renewed time.Time) *coordinationv1.Lease {
	at := metav1.NewMicroTime(renewed)
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: clusterv1.LeaseName},
		Spec:       coordinationv1.LeaseSpec{RenewTime: &at},
	}
}

func TestArrivalsKeepWhenARenewalWasSeen(t *testing.T) {
	clk := clocktesting.NewFakePassiveClock(now)
	a := NewArrivals(clk)
	var present []string
	var beats []Beat
	a.OnPresence(func(cluster string) { present = append(present, cluster) })
	a.OnBeat(func(_ string, b Beat) { beats = append(beats, b) })
	require.True(t, a.Has("c1"), "before the first list no lease may be created")
	s := store{a}
	require.NoError(t, s.Replace([]any{leaseOf("c1", ago(time.Minute)), leaseOf("c2", ago(time.Hour))}, "1"))
	<-a.Synced()
	require.True(t, a.Has("c1"))
	require.False(t, a.Has("c3"))
	require.Equal(t, []string{"c1", "c2"}, present)
	require.True(t, a.Fresh("c1", 5*time.Minute))
	require.False(t, a.Fresh("c2", 5*time.Minute), "a lease that was stale before the start stays stale")
	require.False(t, a.Fresh("c3", 5*time.Minute))

	clk.SetTime(now.Add(4 * time.Minute))
	require.NoError(t, s.Update(leaseOf("c1", ago(time.Minute))))
	require.Len(t, beats, 2, "the same renewTime is not a renewal")
	require.NoError(t, s.Add(leaseOf("c1", now)))
	require.Equal(t, Beat{Renewed: now, Arrived: clk.Now()}, beats[2])
	require.NoError(t, s.Delete(leaseOf("c1", now)))
	require.Equal(t, []string{"c1", "c2", "c1"}, present)
	require.NoError(t, s.Replace(nil, "2"))
	require.Equal(t, []string{"c1", "c2", "c1", "c2"}, present)
	a.Each(func(string, Beat) { t.Fatal("nothing is left") })
	require.Error(t, s.Add("no lease"))
	require.NoError(t, s.Resync())
	require.NoError(
		t, s.Add(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "c4"}}),
		"a lease that was never renewed",
	)
	require.False(t, a.Fresh("c4", time.Minute))
}

func TestWhenTheHubSaidThatAClusterIsAwayIsRemembered(t *testing.T) {
	clk := clocktesting.NewFakeClock(now)
	c := &Controller{
		config: Config{Clock: clk, Arrivals: NewArrivals(clk)}, queue: reconcile.NewQueue("test"), wheel: newWheel(clk),
		views: map[string]view{}, told: map[string]time.Time{}, missed: map[string]time.Time{},
	}
	is := func(status metav1.ConditionStatus) *clusterv1.ManagedCluster {
		mc := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1"}}
		mc.Status.Conditions = []metav1.Condition{{Type: clusterv1.ConditionAvailable, Status: status}}
		return mc
	}
	c.observeCluster(nil, is("Unknown"))
	require.Empty(t, c.told, "it became Unknown before this process started")
	c.observeCluster(is("Unknown"), is("True"))
	require.Empty(t, c.told)
	c.observeCluster(is("True"), is("Unknown"))
	s, err := c.gather(t.Context(), is("True"))
	require.NoError(t, err)
	require.Equal(t, now, s.Told)
	c.observeCluster(is("Unknown"), nil)
	require.Empty(t, c.told)
}

func TestTheTimeWithoutALeaseIsMeasured(t *testing.T) {
	clk := clocktesting.NewFakeClock(now)
	c := &Controller{
		config: Config{Clock: clk, Arrivals: NewArrivals(clk)},
		wheel:  newWheel(clk),
		missed: map[string]time.Time{},
	}
	mc := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1"}}
	c.arm(mc)
	require.Empty(t, c.missed, "a cluster that was never heard from is not missed")
	mc.Status.Conditions = []metav1.Condition{{Type: clusterv1.ConditionAvailable, Status: "True"}}
	c.arm(mc)
	clk.Step(time.Minute)
	c.arm(mc)
	require.Equal(t, now, c.missed["c1"])
	clk.Step(5 * time.Minute)
	require.Equal(t, []string{"c1"}, c.wheel.takeDue())
	require.NoError(t, store{c.config.Arrivals}.Add(leaseOf("c1", clk.Now())))
	c.arm(mc)
	require.Empty(t, c.missed)
}
