// SPDX-License-Identifier: Apache-2.0

//go:build perf

package plugin

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/kubectl-ocm/kubectl-ocm/config/crd"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/naming"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
	"github.com/kubectl-ocm/kubectl-ocm/test/perf/budget"
	"github.com/kubectl-ocm/kubectl-ocm/test/perf/scene"
)

// size is how many clusters are completed, and how many works.
const size = 1000

// completions is how often the names are completed, and read by kubectl.
const completions = 11

// status is what an agent reports of a cluster.
const status = `{"status":{"allocatable":{"cpu":"4","memory":"16Gi"},"capacity":{"cpu":"4","memory":"16Gi"},"version":{"kubernetes":"v1.36.3"},
"clusterClaims":[{"name":"id.k8s.io","value":"c-%[1]d"},{"name":"platform.open-cluster-management.io","value":"aws"},
{"name":"region.open-cluster-management.io","value":"eu"}],
"conditions":[{"type":"HubAcceptedManagedCluster","status":"True","reason":"HubClusterAdminAccepted","message":"Accepted by hub cluster admin",
"lastTransitionTime":"2026-01-01T00:00:00Z"},
{"type":"ManagedClusterJoined","status":"True","reason":"ManagedClusterJoined","message":"Managed cluster joined",
"lastTransitionTime":"2026-01-01T00:00:00Z"},
{"type":"ManagedClusterConditionAvailable","status":"True","reason":"ManagedClusterAvailable","message":"Managed cluster is available",
"lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`

// measureCompletion measures how the names of a fleet are completed.
func measureCompletion(t *testing.T, b *budget.File, program, kubectl string) {
	hub := harness.ControlPlane(t, "hub")
	populate(t, hub)
	run := func(name string, args ...string) func() time.Duration {
		return func() time.Duration {
			cmd := exec.CommandContext(t.Context(), name, args...)
			cmd.Env = []string{"HOME=" + t.TempDir(), "KUBECONFIG=" + hub.Kubeconfig, "PATH=" + os.Getenv("PATH")}
			began := time.Now()
			out, err := cmd.Output()
			took := time.Since(began)
			require.NoError(t, err)
			require.GreaterOrEqual(t, strings.Count(string(out), "\n"), size, string(out))
			return took
		}
	}
	theirs, ours := run(kubectl, "get", "managedclusters", "-o", "name", "--context", "hub"), run(program, "__complete", "cluster", "get", "--context", "hub", "")
	theirs()
	ours()
	var unit, took []time.Duration
	for range completions {
		unit, took = append(unit, theirs()), append(took, ours())
	}
	b.Time("completion", took, budget.Median(unit))
	b.Bytes("completionClusters", sent(t, hub, naming.Clusters))
	b.Bytes("completionWorks", sent(t, hub, naming.Works))
}

// populate creates the clusters and works.
func populate(t *testing.T, hub *harness.Cluster) {
	t.Helper()
	dyn := hub.Dynamic(t)
	definitions, err := crd.Hub()
	require.NoError(t, err)
	for _, d := range definitions {
		if d.GetName() != "managedclusters.cluster.open-cluster-management.io" && d.GetName() != "manifestworks.work.open-cluster-management.io" {
			continue
		}
		_, err := dyn.Resource(fleet.Definitions).Create(t.Context(), d, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	content := strings.Repeat("x", 10<<10)
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(scene.AtOnce)
	for i := range size {
		group.Go(func() error {
			clusters := dyn.Resource(fleet.ManagedClusters)
			mc, err := scene.Object(`{"apiVersion":"cluster.open-cluster-management.io/v1","kind":"ManagedCluster",
				"metadata":{"name":"c-%04d","labels":{"env":"prod"}},"spec":{"hubAcceptsClient":true}}`, i)
			if err != nil {
				return err
			}
			if err := retried(ctx, func() error { _, err := clusters.Create(ctx, mc, metav1.CreateOptions{}); return err }); err != nil {
				return err
			}
			if _, err := clusters.Patch(ctx, mc.GetName(), types.MergePatchType, fmt.Appendf(nil, status, i), metav1.PatchOptions{}, "status"); err != nil {
				return err
			}
			w, err := scene.Object(`{"apiVersion":"work.open-cluster-management.io/v1","kind":"ManifestWork","metadata":{"name":"w-%04d","namespace":"default"},
				"spec":{"workload":{"manifests":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"default"},"data":{"text":%q}}]}}}`, i, content)
			if err != nil {
				return err
			}
			return retried(ctx, func() error {
				_, err := dyn.Resource(fleet.ManifestWorks).Namespace("default").Create(ctx, w, metav1.CreateOptions{})
				return err
			})
		})
	}
	require.NoError(t, group.Wait())
}

// retried repeats a write until the new definition is served.
func retried(ctx context.Context, write func() error) error {
	for {
		err := write()
		if err == nil || !fleet.IsNoKind(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// sent returns how many bytes the hub sends for the names of a kind, in one request.
func sent(t *testing.T, hub *harness.Cluster, names func(context.Context, *fleet.Cluster) ([]string, error)) int64 {
	t.Helper()
	var requests, bytes atomic.Int64
	config := rest.CopyConfig(hub.Config)
	config.DisableCompression = true
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return counting{next, &requests, &bytes} })
	c, err := fleet.Connect(config, "hub")
	require.NoError(t, err)
	found, err := names(t.Context(), c)
	require.NoError(t, err)
	require.Len(t, found, size)
	require.EqualValues(t, 1, requests.Load())
	return bytes.Load()
}

// counting counts requests and the bytes of their answers.
type counting struct {
	next            http.RoundTripper
	requests, bytes *atomic.Int64
}

// RoundTrip sends a request.
func (c counting) RoundTrip(r *http.Request) (*http.Response, error) {
	c.requests.Add(1)
	answer, err := c.next.RoundTrip(r)
	if err == nil {
		answer.Body = counted{answer.Body, c.bytes}
	}
	return answer, err
}

type counted struct {
	io.ReadCloser
	bytes *atomic.Int64
}

// Read reads a part of the answer.
func (c counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.bytes.Add(int64(n))
	return n, err
}
