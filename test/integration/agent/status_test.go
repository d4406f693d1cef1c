// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	config "github.com/kubectl-ocm/kubectl-ocm/config/agent"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/kubeconfig"
)

var (
	nodes  = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	claims = schema.GroupVersionResource{Group: clusters.Group, Version: "v1alpha1", Resource: "clusterclaims"}
)

func (s *spoke) node(t *testing.T, name, cpu string, cordoned bool) {
	t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Node",
		"metadata": map[string]any{"name": name}, "spec": map[string]any{"unschedulable": cordoned}}}
	apply(t, s.client, u)
	amounts := fmt.Sprintf(`{"cpu":%q,"memory":"1Gi"}`, cpu)
	_, err := s.client.Resource(nodes).Patch(t.Context(), name, types.MergePatchType,
		[]byte(fmt.Sprintf(`{"status":{"capacity":%s,"allocatable":%s}}`, amounts, amounts)), metav1.PatchOptions{}, "status")
	require.NoError(t, err)
}

func (s *spoke) claim(t *testing.T, name, value string, labels map[string]any) {
	t.Helper()
	apply(t, s.client, &unstructured.Unstructured{Object: map[string]any{"apiVersion": claims.GroupVersion().String(), "kind": "ClusterClaim",
		"metadata": map[string]any{"name": name, "labels": labels}, "spec": map[string]any{"value": value}}})
}

// never fails when f says true within d. It asks in the test's own goroutine, so
// that nothing of it outlives the test.
func never(t *testing.T, d time.Duration, f func() bool, message string) {
	t.Helper()
	end := time.After(d)
	for {
		require.False(t, f(), message)
		select {
		case <-end:
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func TestStatusFollowsTheCluster(t *testing.T) {
	h, s := newHub(t), newSpoke(t)
	s.install(t, config.Options{ClusterName: "status", BootstrapKubeconfig: h.bootstrap(t)})
	s.node(t, "n1", "2", false)
	s.start(t)
	h.join(t, "status")
	says := func(capacity, allocatable string, want ...string) func() bool {
		return func() bool {
			c := h.cluster(t.Context(), "status")
			var got []string
			for _, claim := range c.Status.ClusterClaims {
				got = append(got, claim.Name+"="+claim.Value)
			}
			cpu, free := c.Status.Capacity["cpu"], c.Status.Allocatable["cpu"]
			return cpu.String() == capacity && free.String() == allocatable && strings.Join(got, " ") == strings.Join(want, " ")
		}
	}
	require.Eventually(t, says("2", "2"), wait, tick)
	s.node(t, "n2", "500m", false)
	require.Eventually(t, says("2500m", "2500m"), wait, tick)
	s.node(t, "n1", "2", true)
	require.Eventually(t, says("2500m", "500m"), wait, tick)
	s.claim(t, "id.k8s.io", "one", nil)
	s.claim(t, "a.example.com", "two", nil)
	s.claim(t, "hidden", "x", map[string]any{"open-cluster-management.io/spoke-only": ""})
	require.Eventually(t, says("2500m", "500m", "id.k8s.io=one", "a.example.com=two"), wait, tick)
	require.NoError(t, s.client.Resource(claims).Delete(t.Context(), "id.k8s.io", metav1.DeleteOptions{}))
	require.Eventually(t, says("2500m", "500m", "a.example.com=two"), wait, tick)

	// At rest nothing is written: the version stays for longer than any retry.
	before := h.cluster(t.Context(), "status").ResourceVersion
	never(t, 3*time.Second, func() bool { return h.cluster(t.Context(), "status").ResourceVersion != before }, "something was written at rest")
}

func TestClusterThatIsDeletedAndMadeAgainResumesWithoutARestart(t *testing.T) {
	h, s := newHub(t), newSpoke(t)
	s.install(t, config.Options{ClusterName: "resumed", BootstrapKubeconfig: h.bootstrap(t)})
	a := s.start(t)
	h.join(t, "resumed")
	require.NoError(t, h.client.Resource(clusters).Delete(t.Context(), "resumed", metav1.DeleteOptions{}))
	never(t, time.Second, func() bool { return h.cluster(t.Context(), "resumed") != nil }, "the agent made it again")
	apply(t, h.client, &unstructured.Unstructured{Object: map[string]any{"apiVersion": clusters.GroupVersion().String(), "kind": "ManagedCluster",
		"metadata": map[string]any{"name": "resumed"}, "spec": map[string]any{}}})
	h.accept(t, "resumed")
	h.awaitCondition(t, "resumed", clusterv1.ConditionAvailable, metav1.ConditionTrue)
	require.True(t, a.running())
	require.Len(t, h.requestsOf(t, "resumed"), 1)
}

func TestLeaseIsRenewedOnlyWhileAccepted(t *testing.T) {
	h, s := newHub(t), newSpoke(t)
	s.install(t, config.Options{ClusterName: "lease", BootstrapKubeconfig: h.bootstrap(t)})
	s.start(t)
	h.join(t, "lease")
	renewed := func() string {
		u, err := h.client.Resource(leases).Namespace("lease").Get(t.Context(), clusterv1.LeaseName, metav1.GetOptions{})
		require.NoError(t, err)
		at, _, _ := unstructured.NestedString(u.Object, "spec", "renewTime")
		return at
	}
	require.Eventually(t, func() bool { return renewed() != "" }, wait, tick)
	h.change(t, "lease", func(c *clusterv1.ManagedCluster) { c.Spec.LeaseDurationSeconds = 1 })
	for range 2 {
		last := renewed()
		require.Eventually(t, func() bool { return renewed() != last }, wait, tick, "another duration takes effect at once")
	}
	h.condition(t, "lease", clusterv1.ConditionHubAccepted, metav1.ConditionFalse, clusterv1.ReasonHubClusterAdminDenied)
	var last string
	require.Eventually(t, func() bool {
		before := last
		last = renewed()
		return before == last
	}, wait, 2*time.Second)
	never(t, 3*time.Second, func() bool { return renewed() != last }, "renewed though not accepted")
}

func TestTenRequestsOfAClusterAreEnough(t *testing.T) {
	h, s := newHub(t), newSpoke(t)
	s.install(t, config.Options{ClusterName: "many", BootstrapKubeconfig: h.bootstrap(t)})
	a := s.start(t)
	first := h.awaitRequest(t, "many")
	a.kill()
	for range 10 {
		u := first.DeepCopy()
		u.Object["status"] = nil
		u.Object["metadata"] = map[string]any{"generateName": "many-", "labels": map[string]any{clusterv1.LabelClusterName: "many"}}
		_, err := h.client.Resource(requests).Create(t.Context(), u, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	require.NoError(t, h.client.Resource(requests).Delete(t.Context(), first.GetName(), metav1.DeleteOptions{}))
	s.start(t)
	s.awaitKlusterlet(t, "HubConnectionDegraded", "BootstrapSecretFunctional,HubKubeConfigSecretMissing", "ten certificate requests")
	require.Len(t, h.requestsOf(t, "many"), 10)
}

func TestJoinThroughAProxy(t *testing.T) {
	h, s := newHub(t), newSpoke(t)
	var tunnels atomic.Int64
	var splicing sync.WaitGroup
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		target, err := (&net.Dialer{}).DialContext(r.Context(), "tcp", r.Host)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		tunnels.Add(1)
		w.WriteHeader(http.StatusOK)
		client, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			_ = target.Close()
			return
		}
		for _, pair := range [][2]net.Conn{{client, target}, {target, client}} {
			splicing.Go(func() {
				_, _ = io.Copy(pair[0], pair[1])
				_, _ = pair[0].Close(), pair[1].Close()
			})
		}
	}))
	t.Cleanup(func() { proxy.Close(); splicing.Wait() })
	endpoint := h.endpoint("hub")
	endpoint.ProxyURL = proxy.URL
	raw, err := endpoint.WithToken(h.As(t, "open-cluster-management", clusterv1.BootstrapServiceAccount).BearerToken)
	require.NoError(t, err)
	s.install(t, config.Options{ClusterName: "proxied", BootstrapKubeconfig: raw})
	a := s.start(t)
	h.join(t, "proxied")
	require.NotZero(t, tunnels.Load())
	kept, err := kubeconfig.ParseSecret(s.secret(t.Context(), "hub-kubeconfig-secret"))
	require.NoError(t, err)
	require.Equal(t, proxy.URL, kept.ProxyURL)
	a.kill()
}
