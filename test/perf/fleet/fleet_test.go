// SPDX-License-Identifier: Apache-2.0

//go:build perf

package fleet

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
	"github.com/kubectl-ocm/kubectl-ocm/test/perf/budget"
)

// patience bounds a command.
const patience = "2m"

// object is the object in each work.
const object = `{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: default}, data: {a: "1"}}`

func TestAFleetStaysWithinItsBudgets(t *testing.T) {
	b := budget.Open(t, "../fleet.yaml")
	programs := map[string]string{"ocm-hub": harness.Program(t, "controllers/ocm-hub"), "ocm-agent": harness.Program(t, "controllers/ocm-agent")}
	clusters := []*harness.Cluster{harness.WithNode(t, "hub", programs), harness.WithNode(t, "c1", programs), harness.WithNode(t, "c2", programs)}
	ocm := plugin(t, clusters)
	put := budget.LeasePuts(t, clusters[0].Config) / budget.Renewals
	b.Time("initToReady", []time.Duration{ocm("", "hub", "init", "--context", "hub")}, put)
	ocm("", "join", "c1", "--context", "c1", "--hub-context", "hub", "--accept")
	var joins, unjoins []time.Duration
	for i := range budget.Sized(budget.Repetitions, 3) {
		if i > 0 {
			unjoins = append(unjoins, ocm("", "unjoin", "c2", "--context", "c2", "--hub-context", "hub", "--yes"))
		}
		joins = append(joins, ocm("", "join", "c2", "--context", "c2", "--hub-context", "hub", "--accept"))
	}
	b.Time("joinToAvailable", joins, put)
	b.Time("unjoin", unjoins, put)
	for i := range 10 {
		name := fmt.Sprintf("work-%d", i)
		ocm(fmt.Sprintf(object, name), "work", "apply", name, "-f", "-", "-c", "c1", "--context", "hub", "--wait")
	}
	<-time.After(budget.Sized(5*time.Minute, 20*time.Second)) // at rest

	hub, agents := budget.Processes(t, programs["ocm-hub"]), budget.Processes(t, programs["ocm-agent"])
	require.Len(t, hub, 1)
	require.Len(t, agents, 2)
	b.Memory("hub", budget.MemoryOf(t, hub[0]))
	b.Memory("agent", budget.MemoryOf(t, agents[0]).Max(budget.MemoryOf(t, agents[1])))
	for _, name := range []string{"c1", "c2"} {
		ocm("", "unjoin", name, "--context", name, "--hub-context", "hub", "--yes")
	}
	b.Time("clean", []time.Duration{ocm("", "hub", "clean", "--context", "hub", "--yes")}, put)
	b.Complete()
}

// plugin builds the plugin and returns a function that runs one of its commands with an
// input and returns how long it took.
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
