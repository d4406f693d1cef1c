// SPDX-License-Identifier: Apache-2.0

package complete

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/options"
	"github.com/kubectl-ocm/kubectl-ocm/plugins/internal/ui"
)

// TestAHubThatHangsIsNotWaitedFor lets the time of a completion end while the hub holds its
// request.
func TestAHubThatHangsIsNotWaitedFor(t *testing.T) {
	asked := make(chan struct{}, 8)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	path := filepath.Join(t.TempDir(), "config")
	require.NoError(t, os.WriteFile(path, []byte(`{"apiVersion": "v1", "kind": "Config", "current-context": "hub",
		"clusters": [{"name": "hub", "cluster": {"server": "`+server.URL+`"}}], "users": [{"name": "me", "user": {}}],
		"contexts": [{"name": "hub", "context": {"cluster": "hub", "user": "me"}}]}`), 0o600))
	t.Setenv("KUBECONFIG", path)
	clock := clocktesting.NewFakeClock(time.Now())
	f := options.NewFactory(&ui.UI{Streams: ui.Streams{Clock: clock, Getenv: os.Getenv}})
	cmd := &cobra.Command{}
	cmd.SetContext(t.Context())
	done := make(chan []string, 1)
	go func() {
		names, _ := Clusters(f)(cmd, nil, "")
		done <- names
	}()
	<-asked
	clock.Step(budget)
	require.Equal(t, []string{"_activeHelp_ no hub answers in context hub"}, <-done)
}
