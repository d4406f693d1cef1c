// SPDX-License-Identifier: Apache-2.0

//go:build perf

package plugin

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
)

// rounds is how many times each program is started.
const rounds = 21

// budget is one line of the budget file.
type budget struct {
	Limit metav1.Duration `json:"limit"`
	Ratio float64         `json:"ratio"`
}

func TestThePluginStartsWithinItsBudget(t *testing.T) {
	raw, err := os.ReadFile("../plugin.yaml")
	require.NoError(t, err)
	var budgets struct {
		Start budget `json:"start"`
	}
	require.NoError(t, yaml.UnmarshalStrict(raw, &budgets))
	binaries, err := harness.Binaries(t.Context())
	require.NoError(t, err)

	calibration := start(t, binaries.Kubectl, "version", "--client")
	median := start(t, build(t), "version", "--client")
	t.Logf("start %s (limit %s), kubectl %s (ratio %.2f of %.2f)", median, budgets.Start.Limit.Duration,
		calibration, float64(median)/float64(calibration), budgets.Start.Ratio)
	if median > budgets.Start.Limit.Duration || float64(median) > budgets.Start.Ratio*float64(calibration) {
		t.Errorf("start is over its budget")
	}
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

// start is the median time of a program from its start to its end, after one
// run that warms it.
func start(t *testing.T, program string, args ...string) time.Duration {
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
	slices.Sort(times)
	return times[len(times)/2]
}
