// SPDX-License-Identifier: Apache-2.0

package harness_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
)

// victim makes this test binary a process that starts a cluster and waits.
const victim = "OCM_HARNESS_VICTIM"

var secrets = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}

func TestAServiceAccountHasItsOwnRightsAndNoMore(t *testing.T) {
	cluster := harness.Shared(t, "hub")
	_, err := cluster.Dynamic(t).Resource(secrets).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)

	client, err := dynamic.NewForConfig(cluster.As(t, "somewhere", "someone"))
	require.NoError(t, err)
	_, err = client.Resource(secrets).List(t.Context(), metav1.ListOptions{})
	require.True(t, apierrors.IsForbidden(err), "want forbidden, got %v", err)
	require.ErrorContains(t, err, "system:serviceaccount:somewhere:someone")
}

func TestNothingIsLeftAfterATest(t *testing.T) {
	var dir string
	t.Run("inner", func(t *testing.T) {
		cluster := harness.ControlPlane(t, "c1")
		dir = cluster.Playground.Dir
		require.Len(t, processesOf(t, dir), 3)
	})
	require.Empty(t, processesOf(t, dir))
	require.NoDirExists(t, filepath.Dir(dir))
}

func TestNothingIsLeftWhenTheTestProcessIsKilled(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	child := exec.CommandContext(t.Context(), self, "-test.run=^TestVictim$")
	child.Env = append(os.Environ(), victim+"=1")
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	t.Cleanup(func() { _ = child.Process.Kill() }) // again, where the test failed before it did
	dir, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	dir = strings.TrimSpace(dir)
	require.Len(t, processesOf(t, dir), 3)

	require.NoError(t, child.Process.Kill())
	require.Error(t, child.Wait())
	require.Eventually(t, func() bool {
		_, err := os.Stat(filepath.Dir(dir))
		return os.IsNotExist(err)
	}, 2*time.Minute, 20*time.Millisecond)
	require.Empty(t, processesOf(t, dir))
}

// TestVictim is the process that TestNothingIsLeftWhenTheTestProcessIsKilled kills.
func TestVictim(t *testing.T) {
	if os.Getenv(victim) == "" {
		return
	}
	cluster := harness.ControlPlane(t, "victim")
	_, err := os.Stdout.WriteString(cluster.Playground.Dir + "\n")
	require.NoError(t, err)
	<-t.Context().Done()
}
