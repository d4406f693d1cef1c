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

// rounds is how many times each program is started, in turn.
const rounds = 21

func TestThePluginIsWithinItsBudgets(t *testing.T) {
	b := budget.Open(t, "../plugin.yaml")
	binaries, err := harness.Binaries(t.Context())
	require.NoError(t, err)

	program := build(t)
	kubectl, ocm := starter(t, binaries.Kubectl), starter(t, program)
	var theirs, ours []time.Duration
	for range rounds {
		theirs, ours = append(theirs, kubectl()), append(ours, ocm())
	}
	b.Time("start", ours, budget.Median(theirs))
	measureCompletion(t, b, program, binaries.Kubectl)
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

// starter runs a program once, to warm the caches, and returns a function that measures a
// run from start to end.
func starter(t *testing.T, program string) func() time.Duration {
	t.Helper()
	home := t.TempDir()
	run := func() time.Duration {
		cmd := exec.CommandContext(t.Context(), program, "version", "--client")
		cmd.Env = []string{"HOME=" + home, "KUBECONFIG=" + filepath.Join(home, "none")}
		began := time.Now()
		require.NoError(t, cmd.Run())
		return time.Since(began)
	}
	run()
	return run
}
