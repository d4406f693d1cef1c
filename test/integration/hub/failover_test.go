// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
)

// The leader's lease, its times, and the margin for a busy machine.
const (
	leaderLock  = "clustermanager-lock"
	leaderLease = 15 * time.Second
	retryPeriod = 2 * time.Second
	slack       = 60 * time.Second
)

// leader returns the holder of the leader's lease: the pod, and the process in it.
func (s *scene) leader(t testing.TB) (pod, identity string) {
	t.Helper()
	lease, err := s.kube.CoordinationV1().Leases(hub.Namespace).Get(context.Background(), leaderLock, metav1.GetOptions{})
	require.NoError(t, err)
	if lease.Spec.HolderIdentity == nil {
		return "", ""
	}
	pod, _, _ = strings.Cut(*lease.Spec.HolderIdentity, "_")
	return pod, *lease.Spec.HolderIdentity
}

// pidOf returns the PID of the hub's process in one pod.
func (s *scene) pidOf(t testing.TB, pod string) int {
	t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*")
	require.NoError(t, err)
	for _, dir := range dirs {
		line, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		env, also := os.ReadFile(filepath.Join(dir, "environ"))
		if err == nil && also == nil && strings.Contains(string(line), "ocm-hub\x00run") && strings.Contains("\x00"+string(env), "\x00POD_NAME="+pod+"\x00") &&
			strings.Contains(string(env), s.Playground.Dir) {
			pid, err := strconv.Atoi(filepath.Base(dir))
			require.NoError(t, err)
			return pid
		}
	}
	t.Fatalf("pod %s has no process", pod)
	return 0
}

// probe calls admission ten times a second, without storing anything.
type probe struct {
	stalls  *harness.Stalls
	mu      sync.Mutex
	asked   int
	refused []time.Time
	lastErr error
}

func (s *scene) probe(t testing.TB) (p *probe, stop func()) {
	t.Helper()
	p = &probe{stalls: harness.WatchStalls(t.Context())}
	u, err := toUnstructured(cluster("probe"))
	require.NoError(t, err)
	end, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			_, err := s.dyn.Resource(clusters).Create(context.Background(), u, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			p.mu.Lock()
			p.asked++
			if err != nil {
				p.refused, p.lastErr = append(p.refused, time.Now()), err
			}
			p.mu.Unlock()
			select {
			case <-end:
				return
			case <-time.After(100 * time.Millisecond):
			}
		}
	}()
	return p, func() { close(end); <-done }
}

// outage returns how long admission did not answer, after a point in time; while the machine stood
// still nobody was to blame.
func (p *probe) outage(since time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := since
	for _, at := range p.refused {
		if at.After(last) && !p.stalls.Excuse(at, time.Minute) {
			last = at
		}
	}
	return last.Sub(since)
}

// versions returns the resource versions of what the loops write for a cluster.
func (s *scene) versions(t testing.TB, name string) string {
	t.Helper()
	ctx := context.Background()
	role, err := s.kube.RbacV1().ClusterRoles().Get(ctx, clusterv1.RolePrefixManagedCluster+name, metav1.GetOptions{})
	require.NoError(t, err)
	ns, err := s.kube.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
	require.NoError(t, err)
	return strings.Join([]string{s.get(t, name).ResourceVersion, role.ResourceVersion, ns.ResourceVersion}, " ")
}

func TestAnotherReplicaLeadsWhenTheLeaderDies(t *testing.T) {
	t.Parallel()
	s := ownHub(t)
	a := s.register(t, "c1", "a")
	stopRenewing := a.renewing(t, "c1", 0)
	defer stopRenewing()
	s.joined(t, a, "c1")
	s.scale(t, 2)
	before := rests(t, func() string { return s.versions(t, "c1") }, time.Second)
	asked, stopAsking := s.probe(t)
	defer stopAsking()

	// A killed leader is restarted, and succeeds itself.
	pod, _ := s.leader(t)
	require.NoError(t, syscall.Kill(s.pidOf(t, pod), syscall.SIGKILL))
	killed := time.Now()
	s.serves(t, "c2")
	t.Logf("a cluster is accepted %s after the death of the leader; admission did not answer for %s", time.Since(killed), asked.outage(killed))
	require.Less(t, time.Since(killed), leaderLease+retryPeriod+slack)
	require.Less(t, asked.outage(killed), leaderLease, "admission does not wait for the lead")

	// A leader that hangs is replaced by the other replica when its lease expires, and no
	// longer leads when it resumes.
	s.scale(t, 2)
	pod, identity := s.leader(t)
	hanging := s.pidOf(t, pod)
	require.NoError(t, syscall.Kill(hanging, syscall.SIGSTOP))
	stoppedAt := time.Now()
	next := s.leads(t, identity, leaderLease+retryPeriod+slack)
	t.Logf("another replica leads %s after the leader hangs", time.Since(stoppedAt))
	s.serves(t, "c3")
	_ = syscall.Kill(hanging, syscall.SIGCONT) // its node may have ended it by now
	never(t, func() bool {
		_, identity := s.leader(t)
		return identity != next
	}, 2*retryPeriod)
	s.serves(t, "c4")
	require.Equal(t, before, s.versions(t, "c1"), "a cluster at rest is not written, and does not flap")

	// A leader that is told to stop hands over at once, without an outage if there is
	// another replica. The process that hung may not be one, because its node soon ends
	// it for that.
	s.replace(t, pod)
	s.awaitHub(t)
	pod, identity = s.leader(t)
	succeeded := s.succession(t)
	stopped := time.Now()
	require.NoError(t, s.kube.CoreV1().Pods(hub.Namespace).Delete(context.Background(), pod, metav1.DeleteOptions{}))
	require.Equal(t, "", succeeded(identity), "the leader gives the lease back, and nobody waits for its end")
	t.Logf("another replica leads %s after the leader was told to stop", time.Since(stopped))
	s.serves(t, "c5")
	asked.mu.Lock()
	lastErr := asked.lastErr
	asked.mu.Unlock()
	require.Zero(t, asked.outage(stopped), "admission answered all along: %v", lastErr)
	require.Equal(t, before, s.versions(t, "c1"))
}

// replace replaces a pod with another one.
func (s *scene) replace(t testing.TB, pod string) {
	t.Helper()
	ctx, now := context.Background(), int64(0)
	require.NoError(t, reconcile.IgnoreNotFound(s.kube.CoreV1().Pods(hub.Namespace).Delete(ctx, pod, metav1.DeleteOptions{GracePeriodSeconds: &now})))
	soon(t, func() bool {
		_, err := s.kube.CoreV1().Pods(hub.Namespace).Get(ctx, pod, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	}, "pod %s stays", pod)
	s.scale(t, 2)
}

// leads waits until an identity other than former leads, and returns it.
func (s *scene) leads(t testing.TB, former string, limit time.Duration) (next string) {
	t.Helper()
	require.True(t, harness.Until(limit, func() bool {
		_, next = s.leader(t)
		return next != "" && next != former
	}), "%s leads on", former)
	return next
}

// succession follows the leader's lease. The function that it returns waits until another one than former leads, and
// returns whom it took the lease from; that is empty if the lease was given back.
func (s *scene) succession(t testing.TB) func(former string) (from string) {
	t.Helper()
	leases := s.kube.CoordinationV1().Leases(hub.Namespace)
	lease, err := leases.Get(context.Background(), leaderLock, metav1.GetOptions{})
	require.NoError(t, err)
	seen, err := leases.Watch(t.Context(), metav1.SingleObject(lease.ObjectMeta))
	require.NoError(t, err)
	t.Cleanup(seen.Stop)
	return func(former string) string {
		t.Helper()
		from, end := former, time.After(patience)
		for {
			select {
			case event, open := <-seen.ResultChan():
				require.True(t, open, "the watch ended")
				lease, is := event.Object.(*coordinationv1.Lease)
				require.True(t, is, "%v", event.Object)
				holder := ptr.Deref(lease.Spec.HolderIdentity, "")
				if holder != "" && holder != former {
					return from
				}
				from = holder
			case <-end:
				require.FailNow(t, "nobody else leads", former)
			}
		}
	}
}

// serves checks that the hub's loops do their work.
func (s *scene) serves(t testing.TB, name string) {
	t.Helper()
	settled(t, func() error { return create(s.dyn, cluster(name)) })
	s.accept(t, name, true)
	s.await(t, name, "is accepted", conditionIs(clusterv1.ConditionHubAccepted, metav1.ConditionTrue, ""))
}
