// SPDX-License-Identifier: Apache-2.0

package complete

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/apitest"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/options"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// TestAThousandClustersAreOneRequest: the budget of a completion has room for one list. The
// clock stands still, so that the test does not depend on how busy the machine is; it logs
// what the completion took.
func TestAThousandClustersAreOneRequest(t *testing.T) {
	var documents []string
	for i := range 1000 {
		documents = append(documents, fmt.Sprintf("apiVersion: cluster.open-cluster-management.io/v1\nkind: ManagedCluster\n"+
			"metadata: {name: cluster-%04d, labels: {env: prod}}\nspec: {hubAcceptsClient: true}\n", i))
	}
	hub := apitest.New(t, "2026-11-01T00:00:00Z", documents...)
	var requests atomic.Int32
	serve := hub.Config.Handler
	hub.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		serve.ServeHTTP(w, r)
	})
	t.Setenv("KUBECONFIG", apitest.Kubeconfig(t, map[string]*apitest.Server{"hub": hub}))
	path := os.Getenv("KUBECONFIG")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, []byte(strings.Replace(string(text), `current-context: ""`, "current-context: hub", 1)), 0o600))

	clock := clocktesting.NewFakeClock(time.Now())
	f := options.NewFactory(&ui.UI{Streams: ui.Streams{Clock: clock, Getenv: os.Getenv}})
	cmd := &cobra.Command{}
	cmd.SetContext(t.Context())
	begin := time.Now()
	names, directive := Clusters(f)(cmd, nil, "cluster-")
	t.Logf("1,000 clusters in %s", time.Since(begin))
	require.Len(t, names, 1000)
	require.Equal(t, cobra.ShellCompDirectiveNoFileComp, directive)
	require.EqualValues(t, 1, requests.Load())
}
