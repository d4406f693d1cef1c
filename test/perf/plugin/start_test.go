// SPDX-License-Identifier: Apache-2.0

//go:build perf

package plugin

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
	"github.com/kubectl-ocm/kubectl-ocm/test/perf/budget"
)

// rounds is how many times each program is started.
const rounds = 21

func TestThePluginStartsWithinItsBudget(t *testing.T) {
	b := budget.Open(t, "../plugin.yaml")
	binaries, err := harness.Binaries(t.Context())
	require.NoError(t, err)

	kubectl := budget.Median(start(t, binaries.Kubectl, "version", "--client"))
	b.Time("start", start(t, build(t), "version", "--client"), kubectl)
	b.Complete()
}

// build compiles the plugin as it is released.
func build(t *testing.T) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "kubectl-ocm")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", out, "./plugins/kubectl-ocm")
	cmd.Dir = filepath.Join("..", "..", "..")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	text, err := cmd.CombinedOutput()
	require.NoError(t, err, string(text))
	return out
}

// start is how long a program takes from its start to its end, after one run
// that warms it.
func start(t *testing.T, program string, args ...string) []time.Duration {
	t.Helper()
	home := t.TempDir()
	var times []time.Duration
	for i := range rounds + 1 {
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Env = []string{"HOME=" + home, "KUBECONFIG=" + filepath.Join(home, "none")}
		began := time.Now()
		require.NoError(t, cmd.Run())
		if i > 0 {
			times = append(times, time.Since(began))
		}
	}
	return times
}
