// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	config "github.com/kubectl-ocm/kubectl-ocm/config/agent"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

// front stands before the API server of a cluster. While sick it answers
// questions about health itself, with 500, and passes on everything else.
type front struct {
	url  string
	ca   []byte
	sick atomic.Bool
}

func newFront(t *testing.T, s *spoke) *front {
	t.Helper()
	target, err := url.Parse(s.Config.Host)
	require.NoError(t, err)
	passOn := httputil.NewSingleHostReverseProxy(target)
	passOn.FlushInterval = -1
	passOn.Transport, err = rest.TransportFor(rest.AnonymousClientConfig(s.Config))
	require.NoError(t, err)
	f := &front{}
	web := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f.sick.Load() && (r.URL.Path == "/livez" || r.URL.Path == "/healthz") {
			http.Error(w, "[-]etcd failed: reason withheld", http.StatusInternalServerError)
			return
		}
		passOn.ServeHTTP(w, r)
	}))
	web.EnableHTTP2 = true
	web.StartTLS()
	t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
	})
	f.url, f.ca = web.URL, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw})
	return f
}

func TestClusterWhoseAPIServerIsSickIsUnavailableAfterTwentySeconds(t *testing.T) {
	t.Parallel()
	h, s := newHub(t), newSpoke(t)
	s.front = newFront(t, s)
	s.install(t, config.Options{ClusterName: "sick", BootstrapKubeconfig: h.bootstrap(t)})
	s.start(t, "agent", "--spoke-cluster-name=sick", "--cluster-healthcheck-period=1s")
	h.join(t, "sick")

	s.front.sick.Store(true)
	fell := time.Now()
	// Not told before it has lasted for 20 seconds.
	never(t, 18*time.Second, func() bool {
		return !apimeta.IsStatusConditionTrue(h.cluster(t.Context(), "sick").Status.Conditions, clusterv1.ConditionAvailable)
	}, "told too early")
	c := h.awaitCondition(t, "sick", clusterv1.ConditionAvailable, metav1.ConditionFalse)
	t.Logf("sick to told: %s", time.Since(fell).Round(time.Millisecond))
	require.GreaterOrEqual(t, time.Since(fell), 20*time.Second)
	told := apimeta.FindStatusCondition(c.Status.Conditions, clusterv1.ConditionAvailable)
	require.Equal(t, clusterv1.ReasonManagedClusterKubeAPIServerUnavailable, told.Reason)
	require.Equal(t, "The kube-apiserver is not ok, status code: 500, [-]etcd failed: reason withheld", told.Message)
	require.Eventually(t, func() bool { return h.told(t, "sick", "Unavailable") }, wait, tick)

	s.front.sick.Store(false)
	c = h.awaitCondition(t, "sick", clusterv1.ConditionAvailable, metav1.ConditionTrue)
	require.Equal(t, clusterv1.ReasonManagedClusterAvailable, apimeta.FindStatusCondition(c.Status.Conditions, clusterv1.ConditionAvailable).Reason)
}

// told tells whether there is an Event with that reason about the cluster.
func (h *hub) told(t *testing.T, cluster, reason string) bool {
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
