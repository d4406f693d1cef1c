// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	config "github.com/kubectl-ocm/kubectl-ocm/config/agent"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness/faults"
)

// front is a proxy for the API server of a cluster. While sick, it answers health checks
// itself, with 500, and passes on everything else.
type front struct {
	sick atomic.Bool
	// livez, unless 0, is the status code for /livez; healthz is not affected.
	livez atomic.Int64
	// once is how many more times /livez is answered with 500.
	once atomic.Int64

	mu sync.Mutex
	// asked counts the requests by path.
	asked map[string]int
}

// answer is what the front answers itself; nil for a request that it passes on.
func (f *front) answer(_ string, r *http.Request) *http.Response {
	path := r.URL.Path
	f.mu.Lock()
	f.asked[path]++
	f.mu.Unlock()
	code, text := 0, ""
	switch {
	case f.sick.Load() && (path == "/livez" || path == "/healthz"), path == "/livez" && f.once.Add(-1) >= 0:
		code, text = http.StatusInternalServerError, "[-]etcd failed: reason withheld"
	case f.livez.Load() != 0 && path == "/livez":
		code, text = int(f.livez.Load()), "not for you"
	default:
		return nil
	}
	return &http.Response{StatusCode: code, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(text + "\n")), Request: r}
}

// requests returns how often each path was requested so far.
func (f *front) requests() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.asked)
}

// newFront puts a front between the API server of a cluster and its agents.
func newFront(t *testing.T, s *spoke) *front {
	t.Helper()
	f, traffic := &front{asked: map[string]int{}}, &faults.Process{}
	traffic.Answer(f.answer)
	s.way = s.Front(t, "cluster", traffic)
	return f
}

func TestClusterWhoseAPIServerIsSickIsUnavailableAfterTwentySeconds(t *testing.T) {
	t.Parallel()
	h, s := newHub(t), newSpoke(t)
	front := newFront(t, s)
	s.install(t, config.Options{ClusterName: "sick", BootstrapKubeconfig: h.bootstrap(t)})
	s.start(t, "agent", "--spoke-cluster-name=sick", "--cluster-healthcheck-period=1s")
	h.join(t, "sick")

	front.sick.Store(true)
	fell := time.Now()
	// It is not reported before it has lasted for 20 seconds.
	never(t, 18*time.Second, func() bool {
		return !apimeta.IsStatusConditionTrue(h.cluster(t.Context(), "sick").Status.Conditions, clusterv1.ConditionAvailable)
	}, "told too early")
	c := h.awaitCondition(t, "sick", clusterv1.ConditionAvailable, metav1.ConditionFalse)
	t.Logf("sick to told: %s", time.Since(fell).Round(time.Millisecond))
	require.GreaterOrEqual(t, time.Since(fell), 20*time.Second)
	told := apimeta.FindStatusCondition(c.Status.Conditions, clusterv1.ConditionAvailable)
	require.Equal(t, clusterv1.ReasonManagedClusterKubeAPIServerUnavailable, told.Reason)
	require.Equal(t, "The kube-apiserver is not ok, status code: 500, [-]etcd failed: reason withheld", told.Message)
	await(t, func() bool { return h.hasEvent(t, "sick", "Unavailable") })

	front.sick.Store(false)
	c = h.awaitCondition(t, "sick", clusterv1.ConditionAvailable, metav1.ConditionTrue)
	require.Equal(t, clusterv1.ReasonManagedClusterAvailable, apimeta.FindStatusCondition(c.Status.Conditions, clusterv1.ConditionAvailable).Reason)
}

// awaitReport waits until the agent has reported everything about a cluster with this
// many CPUs; after that, it writes only when something changes.
func (h *hub) awaitReport(t *testing.T, cluster, cpu string) {
	t.Helper()
	await(t, func() bool {
		s := h.cluster(t.Context(), cluster).Status
		all, free := s.Capacity["cpu"], s.Allocatable["cpu"]
		return s.Version.Kubernetes != "" && all.String() == cpu && free.String() == cpu &&
			apimeta.IsStatusConditionTrue(s.Conditions, clusterv1.ConditionAvailable) &&
			apimeta.IsStatusConditionTrue(s.Conditions, clusterv1.ConditionClusterCertificateRotated)
	}, "the report of %s is not complete", cluster)
}

// hasEvent reports whether there is an Event with this reason about the cluster.
func (h *hub) hasEvent(t *testing.T, cluster, reason string) bool {
	t.Helper()
	list, err := h.client.Resource(events).Namespace(cluster).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for _, e := range list.Items {
		if e.Object["reason"] == reason {
			return true
		}
	}
	return false
}

func TestHealthIsReadWhereItIsServed(t *testing.T) {
	h, s := newHub(t), newSpoke(t)
	front := newFront(t, s)
	front.livez.Store(http.StatusNotFound)
	s.install(t, config.Options{ClusterName: "fallback", BootstrapKubeconfig: h.bootstrap(t)})
	s.node(t, "n1", "2", false)
	s.start(t, "agent", "--spoke-cluster-name=fallback", "--cluster-healthcheck-period=1s")
	h.join(t, "fallback") // by /healthz
	looks := func(path string, more int) {
		t.Helper()
		before := front.requests()[path]
		await(t, func() bool { return front.requests()[path] >= before+more })
	}
	available := func() bool {
		return apimeta.IsStatusConditionTrue(h.cluster(t.Context(), "fallback").Status.Conditions, clusterv1.ConditionAvailable)
	}
	front.livez.Store(http.StatusForbidden)
	looks("/healthz", 2)
	require.True(t, available(), "403 asks /healthz too")
	front.livez.Store(0)

	// One answer of 500 is not reported, nor is what happens in the meantime.
	h.awaitReport(t, "fallback", "2")
	version := h.cluster(t.Context(), "fallback").ResourceVersion
	front.once.Store(1)
	looks("/livez", 3)
	require.True(t, available())
	require.Equal(t, version, h.cluster(t.Context(), "fallback").ResourceVersion)
}

func TestAHeartbeatOfANodeCausesNoRequest(t *testing.T) {
	h, s := newHub(t), newSpoke(t)
	front := newFront(t, s)
	s.install(t, config.Options{ClusterName: "beats", BootstrapKubeconfig: h.bootstrap(t)})
	s.node(t, "n1", "2", false)
	s.start(t)
	h.join(t, "beats")
	cpu := func() string {
		q := h.cluster(t.Context(), "beats").Status.Capacity["cpu"]
		return q.String()
	}
	h.awaitReport(t, "beats", "2")
	begun := time.Now()
	health, version := front.requests(), h.cluster(t.Context(), "beats").ResourceVersion
	for i := range 100 {
		body, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []any{map[string]any{
			"type": "Ready", "status": "True", "lastHeartbeatTime": time.Unix(int64(1e9+i), 0).UTC().Format(time.RFC3339)}}}})
		require.NoError(t, err)
		_, err = s.client.Resource(nodes).Patch(t.Context(), "n1", types.MergePatchType, body, metav1.PatchOptions{}, "status")
		require.NoError(t, err)
	}
	// A change after the heartbeats is seen, so they were seen as well.
	s.node(t, "n2", "1", false)
	await(t, func() bool { return cpu() == "3" })
	now, minutes := front.requests(), int(time.Since(begun)/time.Minute)+1
	for _, path := range []string{"/livez", "/version", "/api/v1/nodes"} {
		require.LessOrEqual(t, now[path]-health[path], minutes, "%s: only what each minute brings", path)
	}
	after := h.cluster(t.Context(), "beats")
	require.NotEqual(t, version, after.ResourceVersion)

	// A resource that disappears with its node is removed from the sum; what others wrote
	// stays.
	_, err := s.client.Resource(nodes).Patch(t.Context(), "n2", types.MergePatchType,
		[]byte(`{"status":{"capacity":{"example.com/fpga":"4"}}}`), metav1.PatchOptions{}, "status")
	require.NoError(t, err)
	has := func(name clusterv1.ResourceName) bool {
		_, ok := h.cluster(t.Context(), "beats").Status.Capacity[name]
		return ok
	}
	await(t, func() bool { return has("example.com/fpga") })
	_, err = h.client.Resource(clusters).Patch(t.Context(), "beats", types.MergePatchType,
		[]byte(`{"status":{"capacity":{"core_worker":"7"}}}`), metav1.PatchOptions{FieldManager: "billing"}, "status")
	require.NoError(t, err)
	require.NoError(t, s.client.Resource(nodes).Delete(t.Context(), "n2", metav1.DeleteOptions{}))
	await(t, func() bool { return !has("example.com/fpga") && cpu() == "2" })
	require.True(t, has("core_worker"))
}

func TestAClusterWithAWrongClockIsReportedAllTheSame(t *testing.T) {
	h, s := newHub(t), newSpoke(t)
	s.install(t, config.Options{ClusterName: "skewed", BootstrapKubeconfig: h.bootstrap(t)})
	s.start(t)
	h.join(t, "skewed")
	h.condition(t, "skewed", clusterv1.ConditionClockSynced, metav1.ConditionFalse, clusterv1.ReasonManagedClusterClockOutOfSync)
	s.node(t, "n1", "7", false)
	await(t, func() bool {
		q := h.cluster(t.Context(), "skewed").Status.Capacity["cpu"]
		return q.String() == "7"
	})
	h.condition(t, "skewed", clusterv1.ConditionAvailable, metav1.ConditionUnknown, clusterv1.ReasonManagedClusterLeaseUpdateStopped)
	h.awaitCondition(t, "skewed", clusterv1.ConditionAvailable, metav1.ConditionTrue)
}
