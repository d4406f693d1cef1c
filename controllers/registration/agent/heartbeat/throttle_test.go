// SPDX-License-Identifier: Apache-2.0

package heartbeat

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

// throttling is an API server that rejects the first requests.
type throttling struct {
	mu      sync.Mutex
	refuse  int
	methods []string
}

// ServeHTTP answers with the lease, or with 429.
func (s *throttling) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.methods = append(s.methods, r.Method)
	if s.refuse > 0 {
		s.refuse--
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
		"metadata": map[string]any{"name": clusterv1.LeaseName, "namespace": "c1", "resourceVersion": "1"},
	})
}

func TestAThrottledRenewalIsRepeatedInTime(t *testing.T) {
	server := &throttling{refuse: 3}
	listening := httptest.NewServer(server)
	defer listening.Close()
	client, err := dynamic.NewForConfig(&rest.Config{Host: listening.URL, QPS: -1})
	require.NoError(t, err)
	c := &Controller{
		config: Config{Hub: client, Cluster: "c1", Clock: clock.RealClock{}, Random: func() float64 { return 0 }},
	}

	began := time.Now()
	require.NoError(t, c.renew(t.Context()))
	require.False(t, c.Renewed().Before(began))
	require.Equal(
		t, []string{"GET", "GET", "GET", "GET", "PUT"}, server.methods, "more requests than the server asked for",
	)

	// The next renewal is one PUT again.
	server.methods = nil
	require.NoError(t, c.renew(t.Context()))
	require.Equal(t, []string{"PUT"}, server.methods)
}
