// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
	"github.com/kubectl-ocm/kubectl-ocm/test/playground"
)

// TestAHubThatIsRestoredFromABackUpRemovesNothing restores an older state of a hub's
// store, with lower resource versions, while its process and the agent keep running.
func TestAHubThatIsRestoredFromABackUpRemovesNothing(t *testing.T) {
	t.Parallel()
	hub := harness.WithNode(t, "hub", map[string]string{"ocm-hub": harness.Program(t, "controllers/ocm-hub")})
	spoke := harness.FreshWithNode(t, "spoke", map[string]string{"ocm-agent": harness.Program(t, "controllers/ocm-agent")})
	kubeconfig(t, hub, spoke)
	require.Zero(t, run(t, "hub", "init", "--context", "hub", "--timeout", "5m").code)
	require.Zero(t, run(t, "join", "cluster1", "--context", "spoke", "--hub-context", "hub", "--accept", "--timeout", "5m").code)
	sent := func(work string, objects ...string) {
		t.Helper()
		var body []string
		for _, name := range objects {
			body = append(body, strings.ReplaceAll(configMap, "greeting", name))
		}
		got := runWith(t, strings.Join(body, "---\n"), "work", "apply", work, "-f", "-", "-c", "cluster1", "--context", "hub", "--wait", "--timeout", "5m")
		require.Zero(t, got.code)
	}
	sent("grows", "greeting-a")
	copied := filepath.Join(t.TempDir(), "etcd")
	store(t, hub, func(data string) { require.NoError(t, os.CopyFS(copied, os.DirFS(data))) })
	sent("grows", "greeting-a", "greeting-b")
	sent("younger", "greeting-c")
	before := running(t, spoke)
	require.Len(t, before, 3)

	store(t, hub, func(data string) {
		require.NoError(t, os.RemoveAll(data))
		require.NoError(t, os.CopyFS(data, os.DirFS(copied)))
	})
	held := &metav1.Condition{}
	eventually(t, func() bool {
		work, err := typed.Get[workv1.ManifestWork](t.Context(), hub.Dynamic(t), works, "cluster1", "grows")
		if err != nil {
			return false
		}
		held = apimeta.FindStatusCondition(work.Status.Conditions, workv1.ConditionRemovalHeld)
		return held != nil
	}, patience, 500*time.Millisecond, "the agent does not report that the hub went back")
	require.Equal(t, workv1.ReasonHubWentBack, held.Reason)
	require.Equal(t, before, running(t, spoke))

	// A user confirms the removal with the command in the condition, and it is carried
	// out.
	_, line, found := strings.Cut(held.Message, ": kubectl annotate ")
	require.True(t, found, held.Message)
	typeLine(t, "kubectl annotate "+line+" --context spoke")
	eventually(t, func() bool { return len(running(t, spoke)) == 2 }, patience, 500*time.Millisecond)
	require.NotContains(t, running(t, spoke), "greeting-b")
	require.Equal(t, before["greeting-c"], running(t, spoke)["greeting-c"], "the hub knows nothing of its work, and it is kept")
}

// store stops the hub's API server and etcd, and starts them again after a change of the
// data.
func store(t *testing.T, hub *harness.Cluster, change func(data string)) {
	t.Helper()
	for _, component := range []playground.Component{playground.APIServer, playground.Etcd} {
		require.NoError(t, hub.Playground.Kill(component))
	}
	change(filepath.Join(hub.Playground.Dir, "etcd"))
	for _, component := range []playground.Component{playground.Etcd, playground.APIServer} {
		require.NoError(t, hub.Playground.Restart(t.Context(), component))
	}
}
