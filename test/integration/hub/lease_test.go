// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub/lease"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness/faults"
)

// isAway reports whether the hub has set a cluster to Unknown because it does not renew.
var isAway = conditionIs(clusterv1.ConditionAvailable, metav1.ConditionUnknown, clusterv1.ReasonManagedClusterLeaseUpdateStopped)

// brief sets a lease duration of one second, so that the grace period is five.
func (s *scene) brief(t testing.TB, name string) {
	t.Helper()
	require.NoError(t, patch(s.dyn, name, `{"spec":{"leaseDurationSeconds":1}}`))
}

// lasting sets a lease duration of two seconds, so that the grace period is ten: long
// enough for an agent that renews twice a second on a busy machine.
func (s *scene) lasting(t testing.TB, name string) {
	t.Helper()
	require.NoError(t, patch(s.dyn, name, `{"spec":{"leaseDurationSeconds":2}}`))
}

// moreThanGrace is longer than the grace period of lasting.
const moreThanGrace = 11 * time.Second

// renewing renews a lease twice a second until the returned function is called.
func (a *agent) renewing(t testing.TB, name string, skew time.Duration) (stop func()) {
	t.Helper()
	end, done := make(chan struct{}), make(chan struct{})
	a.renewed.Store(time.Now().UnixNano())
	go func() {
		defer close(done)
		for {
			if a.tryRenew(name, skew) {
				now := time.Now().UnixNano()
				a.pause.Store(max(a.pause.Load(), now-a.renewed.Swap(now)))
			}
			select {
			case <-end:
				return
			case <-time.After(500 * time.Millisecond):
			}
		}
	}()
	return func() { close(end); <-done }
}

func (a *agent) tryRenew(name string, skew time.Duration) bool {
	leases := a.kube.CoordinationV1().Leases(name)
	lease, err := leases.Get(context.Background(), clusterv1.LeaseName, metav1.GetOptions{})
	if err != nil {
		return false
	}
	sent := time.Now()
	now := metav1.NewMicroTime(sent.Add(skew))
	lease.Spec.RenewTime = &now
	if _, err = leases.Update(context.Background(), lease, metav1.UpdateOptions{}); err != nil {
		return false // the next one follows
	}
	a.sent.Store(sent.UnixNano())
	return true
}

// stays fails the test when the hub sets a cluster to Unknown although its agent renews all the time. It begins again
// when the agent itself was held up for half of the grace period, as on a machine that stands still: then the hub is right.
func (s *scene) stays(t testing.TB, a *agent, name string) {
	t.Helper()
	for range 5 {
		a.pause.Store(0)
		if !harness.Until(moreThanGrace, func() bool { return isAway(s.get(t, name)) }) {
			return
		}
		pause := time.Duration(max(a.pause.Load(), time.Now().UnixNano()-a.renewed.Load()))
		require.Greater(t, pause, moreThanGrace/2, "the agent renews, and its cluster is away")
		t.Logf("the agent was held up for %s", pause)
		a.report(t, name, metav1.ConditionTrue)
	}
	require.Fail(t, "the agent does not renew", name)
}

func TestAClusterIsAvailableAsLongAsItRenews(t *testing.T) {
	t.Parallel()
	s := sharedHub(t)
	a := s.register(t, "steady", "a")
	a.renew(t, "steady", 0)
	a.report(t, "steady", metav1.ConditionTrue)
	stop := a.renewing(t, "steady", 0)
	s.lasting(t, "steady")
	s.stays(t, a, "steady")
	stop()
	s.await(t, "steady", "is away", isAway)
	require.Greater(t, time.Since(time.Unix(0, a.sent.Load())), 9*time.Second)
	soon(t, func() bool { return len(s.events(t, "steady", "AvailableUnknown")) == 1 })
	require.Regexp(t, "^registration-controller: ", s.events(t, "steady", "AvailableUnknown")[0])
	never(t, func() bool { return len(s.events(t, "steady", "AvailableUnknown")) > 1 }, 2*time.Second, "it is reported once")

	stop = a.renewing(t, "steady", 0)
	a.report(t, "steady", metav1.ConditionTrue)
	s.stays(t, a, "steady")

	// The same agent continues with a cluster of the same name.
	ctx := context.Background()
	require.NoError(t, s.dyn.Resource(clusters).Delete(ctx, "steady", metav1.DeleteOptions{}))
	s.await(t, "steady", "is gone", func(mc *clusterv1.ManagedCluster) bool { return mc == nil })
	require.NoError(t, create(s.dyn, cluster("steady")))
	s.accept(t, "steady", true)
	s.await(t, "steady", "is accepted", conditionIs(clusterv1.ConditionHubAccepted, metav1.ConditionTrue, ""))
	s.lasting(t, "steady")
	a.report(t, "steady", metav1.ConditionTrue)
	s.stays(t, a, "steady")
	stop()
}

// An API server that was away for long is asked again within seconds: until then the hub sees no
// renewal.
func TestRenewalsAreSeenSoonAfterAnOutage(t *testing.T) {
	t.Parallel()
	s := sharedHub(t)
	a := s.register(t, "outage", "a")
	config, line := faults.Count(s.As(t, hub.Namespace, hub.Name))
	failed, stalls := make(chan struct{}, 100), harness.WatchStalls(t.Context())
	line.Fail(func(_ string, r *http.Request) error {
		if r.URL.Query().Get("watch") == "" { // a round ends with a list
			failed <- struct{}{}
		}
		return errors.New("the API server is away")
	})
	seen := make(chan struct{})
	arrivals, once := lease.NewArrivals(clock.RealClock{}), sync.OnceFunc(func() { close(seen) })
	arrivals.OnBeat(func(cluster string, b lease.Beat) {
		if cluster == "outage" && !b.Renewed.IsZero() {
			once()
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- arrivals.Run(ctx, config) }()
	for range 7 { // from here on the default of client-go pauses for 30 to 60 s, and this hub for 8 at most
		<-failed
	}
	line.Fail(nil)
	a.renew(t, "outage", 0)
	began := time.Now()
	select {
	case <-seen:
	case <-time.After(patience):
		require.Fail(t, "the renewal is not seen")
	}
	took := time.Since(began)
	require.True(t, took < 25*time.Second || stalls.Excuse(began.Add(took), took), "the renewal is seen after %s", took)
	cancel()
	require.NoError(t, <-done)
}

// The hub judges a cluster by when its renewals arrive, and its clock by what they say: a
// wrong clock is reported, and the cluster stays available.
func TestAWrongClockIsShownAndDoesNotTakeTheClusterAway(t *testing.T) {
	t.Parallel()
	s := sharedHub(t)
	a := s.register(t, "skewed", "a")
	a.renew(t, "skewed", 0)
	a.report(t, "skewed", metav1.ConditionTrue)
	clockIs := func(status metav1.ConditionStatus) func(*clusterv1.ManagedCluster) bool {
		return conditionIs(clusterv1.ConditionClockSynced, status, "")
	}
	s.await(t, "skewed", "has the right time", clockIs("True"))
	a.renew(t, "skewed", -301*time.Second)
	mc := s.await(t, "skewed", "has the wrong time", clockIs("False"))
	require.True(t, conditionIs(clusterv1.ConditionAvailable, metav1.ConditionTrue, "")(mc))
	for _, step := range []struct {
		value string
		want  metav1.ConditionStatus
	}{{"true", "True"}, {"yes", "False"}, {"true", "True"}} {
		require.NoError(t, patch(s.dyn, "skewed", `{"metadata":{"annotations":{"`+clusterv1.AnnotationSkipClockSyncCheck+`":"`+step.value+`"}}}`))
		a.renew(t, "skewed", -302*time.Second)
		s.await(t, "skewed", "follows the annotation", clockIs(step.want))
	}
	require.NoError(t, patch(s.dyn, "skewed", `{"metadata":{"annotations":{"`+clusterv1.AnnotationSkipClockSyncCheck+`":null}}}`))
	s.await(t, "skewed", "has the wrong time again", clockIs("False"))
	a.renew(t, "skewed", time.Hour)
	never(t, func() bool { return clockIs("True")(s.get(t, "skewed")) }, time.Second, "nor is the future right")
	a.renew(t, "skewed", 0)
	s.await(t, "skewed", "has the right time again", clockIs("True"))

	// Five durations behind, with a duration of two seconds: nothing flaps.
	s.lasting(t, "skewed")
	stop := a.renewing(t, "skewed", -20*time.Second)
	defer stop()
	s.await(t, "skewed", "is too late for its duration", clockIs("False"))
	s.stays(t, a, "skewed")
}

func TestTheHubSurvivesOddLeases(t *testing.T) {
	t.Parallel()
	s := sharedHub(t)
	a := s.register(t, "odd", "a")
	a.renew(t, "odd", 0)
	a.report(t, "odd", metav1.ConditionTrue)
	for _, body := range []string{
		`{"spec":{"renewTime":null}}`, `{"spec":{"renewTime":"9999-12-31T23:59:59.999999Z"}}`, `{"spec":{"renewTime":"0001-01-02T00:00:00.000000Z"}}`,
		`{"spec":{"renewTime":null,"leaseDurationSeconds":1,"holderIdentity":""}}`,
	} {
		_, err := s.kube.CoordinationV1().Leases("odd").Patch(context.Background(), clusterv1.LeaseName, types.MergePatchType, []byte(body), metav1.PatchOptions{})
		require.NoError(t, err, body)
		never(t, func() bool { return isAway(s.get(t, "odd")) }, time.Second, body)
	}
	for _, seconds := range []string{"2147483647", "-5"} {
		require.ErrorContains(t, patch(s.dyn, "odd", `{"spec":{"leaseDurationSeconds":`+seconds+`}}`), "is not between 1 and 86400")
	}
	require.NoError(t, patch(s.dyn, "odd", `{"spec":{"leaseDurationSeconds":86400}}`))
	a.renew(t, "odd", 0)
	s.await(t, "odd", "has the right time", conditionIs(clusterv1.ConditionClockSynced, metav1.ConditionTrue, ""))
	require.NoError(t, patch(s.dyn, "odd", `{"spec":{"leaseDurationSeconds":0}}`))
	never(t, func() bool { return isAway(s.get(t, "odd")) }, 2*time.Second, "none counts as the default")
	s.brief(t, "odd")
	s.await(t, "odd", "is away, as the duration says", isAway)
}

func TestLeasesComeWithAcceptanceAndClustersWithoutThemAreUnknown(t *testing.T) {
	t.Parallel()
	s := sharedHub(t)
	ctx := context.Background()
	leases := s.kube.CoordinationV1().Leases("leased")
	require.NoError(t, create(s.dyn, cluster("leased")))
	never(t, func() bool {
		_, err := leases.Get(ctx, clusterv1.LeaseName, metav1.GetOptions{})
		return !apierrors.IsNotFound(err)
	}, time.Second, "a cluster that is not accepted has none")
	a := s.admit(t, "leased", "a")
	has := func() bool {
		l, err := leases.Get(ctx, clusterv1.LeaseName, metav1.GetOptions{})
		return err == nil && l.Labels[clusterv1.LabelClusterName] == "leased" && *l.Spec.HolderIdentity == clusterv1.LeaseName && l.Spec.RenewTime != nil
	}
	require.True(t, eventually(has))
	a.report(t, "leased", metav1.ConditionTrue)
	require.NoError(t, leases.Delete(ctx, clusterv1.LeaseName, metav1.DeleteOptions{}))
	require.True(t, eventually(has), "it is made again")
	require.False(t, isAway(s.get(t, "leased")))

	s.work(t, "leased", "held", -1)
	require.NoError(t, s.dyn.Resource(clusters).Delete(ctx, "leased", metav1.DeleteOptions{}))
	s.await(t, "leased", "goes", conditionIs(clusterv1.ConditionDeleting, metav1.ConditionFalse, clusterv1.ReasonResourceRemaining))
	require.NoError(t, leases.Delete(ctx, clusterv1.LeaseName, metav1.DeleteOptions{}))
	s.await(t, "leased", "is unknown at once", isAway)
	never(t, has, time.Second, "a cluster that goes gets none")
	s.letGo(t, works, "leased", "held")
	s.await(t, "leased", "is gone", func(mc *clusterv1.ManagedCluster) bool { return mc == nil })
}
