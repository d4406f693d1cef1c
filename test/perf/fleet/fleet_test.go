// SPDX-License-Identifier: Apache-2.0

//go:build perf

package fleet

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
)

// idle is how long the fleet rests before its memory is read; patience bounds a
// command.
const (
	idle     = time.Minute
	patience = "2m"
)

// object is what each work holds.
const object = `{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: default}, data: {a: "1"}}`

func TestAFleetStaysWithinItsBudgets(t *testing.T) {
	raw, err := os.ReadFile("../fleet.yaml")
	require.NoError(t, err)
	var budgets struct {
		Join  metav1.Duration   `json:"joinToAvailable"`
		Hub   resource.Quantity `json:"hubResident"`
		Agent resource.Quantity `json:"agentResident"`
	}
	require.NoError(t, yaml.UnmarshalStrict(raw, &budgets))

	programs := map[string]string{"ocm-hub": harness.Program(t, "controllers/ocm-hub"), "ocm-agent": harness.Program(t, "controllers/ocm-agent")}
	clusters := []*harness.Cluster{harness.WithNode(t, "hub", programs), harness.WithNode(t, "c1", programs), harness.WithNode(t, "c2", programs)}
	ocm := plugin(t, clusters)
	t.Logf("hub init: %s", ocm("", "hub", "init", "--context", "hub"))
	var slowest time.Duration
	for _, name := range []string{"c1", "c2"} {
		slowest = max(slowest, ocm("", "join", name, "--context", name, "--hub-context", "hub", "--accept"))
	}
	for i := range 10 {
		name := fmt.Sprintf("work-%d", i)
		ocm(fmt.Sprintf(object, name), "work", "apply", name, "-f", "-", "-c", "c1", "--context", "hub", "--wait")
	}
	<-time.After(idle)

	hub, agents := resident(t, programs["ocm-hub"]), resident(t, programs["ocm-agent"])
	require.Len(t, hub, 1)
	require.Len(t, agents, 2)
	agent := max(agents[0], agents[1])
	t.Logf("join to Available %s (limit %s), hub %.1f MiB (limit %s), agent %.1f MiB (limit %s)", slowest, budgets.Join.Duration,
		mebibytes(hub[0]), budgets.Hub.String(), mebibytes(agent), budgets.Agent.String())
	require.LessOrEqual(t, slowest, budgets.Join.Duration)
	require.LessOrEqual(t, hub[0], budgets.Hub.Value())
	require.LessOrEqual(t, agent, budgets.Agent.Value())
}

// plugin builds the plugin and returns a function that runs one of its commands
// with an input and says how long it took.
func plugin(t *testing.T, clusters []*harness.Cluster) func(in string, args ...string) time.Duration {
	t.Helper()
	files := make([]string, 0, len(clusters))
	for _, c := range clusters {
		files = append(files, c.Kubeconfig)
	}
	program := harness.Program(t, "plugins/kubectl-ocm")
	return func(in string, args ...string) time.Duration {
		cmd := exec.CommandContext(t.Context(), program, append(args, "--timeout", patience)...)
		cmd.Env = append(os.Environ(), "KUBECONFIG="+strings.Join(files, string(filepath.ListSeparator)))
		cmd.Stdin = strings.NewReader(in)
		began := time.Now()
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s\n%s", strings.Join(args, " "), out)
		return time.Since(began)
	}
}

var vmRSS = regexp.MustCompile(`(?m)^VmRSS:\s+(\d+) kB$`)

// resident is the memory of each process of a program, in bytes.
func resident(t *testing.T, program string) []int64 {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/exe")
	require.NoError(t, err)
	var out []int64
	for _, link := range links {
		if target, err := os.Readlink(link); err != nil || target != program {
			continue
		}
		status, err := os.ReadFile(filepath.Join(filepath.Dir(link), "status"))
		require.NoError(t, err)
		found := vmRSS.FindSubmatch(status)
		require.NotNil(t, found)
		kib, err := strconv.ParseInt(string(found[1]), 10, 64)
		require.NoError(t, err)
		out = append(out, kib<<10)
	}
	return out
}

func mebibytes(b int64) float64 { return float64(b) / (1 << 20) }
