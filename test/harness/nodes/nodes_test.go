// SPDX-License-Identifier: Apache-2.0

//go:build e2e && linux

package nodes_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/test/harness/nodes"
)

// victim is set for the test process that TestNothingIsLeftOfAKilledTest kills.
const victim = "NODES_TEST_VICTIM"

// up is what the victim prints when its cluster runs.
const up = "cluster is up"

func TestMain(m *testing.M) {
	if os.Getenv(victim) == "" {
		os.Exit(m.Run())
	}
	fmt.Println(beVictim())
	select {}
}

// beVictim starts a cluster and leaves it running.
func beVictim() string {
	ctx := context.Background()
	binaries, err := nodes.FindBinaries(ctx)
	if err != nil {
		return err.Error()
	}
	fabric, err := nodes.NewFabric(ctx, binaries)
	if err != nil {
		return err.Error()
	}
	c, err := fabric.Start(ctx, nodes.Options{Name: "victim"})
	if err != nil {
		return err.Error()
	}
	if _, err := c.Kubectl(ctx, "run", "sleeper", "--image="+nodes.PauseImage); err != nil {
		return err.Error()
	}
	if _, err := c.Kubectl(ctx, "wait", "--for=condition=Ready", "pod/sleeper", "--timeout=60s"); err != nil {
		return err.Error()
	}
	return up
}

func TestNothingIsLeftOfAKilledTest(t *testing.T) {
	before, err := nodes.TakeInventory()
	require.NoError(t, err)
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), victim+"=1")
	child.Stderr = os.Stderr
	output, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	t.Cleanup(func() { _ = child.Process.Kill() }) // also when something fails before it is killed below
	line, err := bufio.NewReader(output).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, up, strings.TrimSpace(line))

	during, err := nodes.TakeInventory()
	require.NoError(t, err)
	found := strings.Join(before.Added(during), "\n")
	for _, kind := range []string{"folder /", "cgroup /", "process "} {
		require.Contains(t, found, kind, "the inventory must see what a running cluster is made of")
	}
	require.NoError(t, child.Process.Kill())
	_ = child.Wait() // it was killed
	nodes.RequireNothingLeft(t, before)
}

func TestEveryProgramCanDieAndComeBack(t *testing.T) {
	c := nodes.Start(t, nodes.Options{Name: "c1"})[0]
	for _, component := range nodes.Components() {
		require.NoError(t, c.KillProcess(component))
		require.Error(t, c.Ready(t.Context(), component), "%s answers after its death", component)
		require.NoError(t, c.Restart(t.Context(), component))
		require.NoError(t, c.Ready(t.Context(), component))
	}
	require.Eventually(t, func() bool {
		out, err := c.Kubectl(t.Context(), "get", "node", "c1", "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].status}`)
		return err == nil && out == "True"
	}, time.Minute, 200*time.Millisecond)

	require.NoError(t, c.Pause(nodes.APIServer))
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := c.Get(ctx, "/readyz")
	require.ErrorIs(t, err, context.DeadlineExceeded, "a paused kube-apiserver hangs")
	require.NoError(t, c.Resume(nodes.APIServer))
	_, err = c.Get(t.Context(), "/readyz")
	require.NoError(t, err)
}

func TestWrongNamesAreRefused(t *testing.T) {
	before, err := nodes.TakeInventory()
	require.NoError(t, err)
	binaries, err := nodes.FindBinaries(t.Context())
	require.NoError(t, err)
	fabric, err := nodes.NewFabric(t.Context(), binaries)
	require.NoError(t, err)
	for name, tc := range map[string]struct{ cluster, want string }{
		"empty":            {"", "that is no name for a cluster"},
		"a path":           {"../c1", "that is no name for a cluster"},
		"the switch's":     {"switch", "that is no name for a cluster"},
		"an upper case":    {"C1", "that is no name for a cluster"},
		"longer than 32":   {strings.Repeat("a", 33), "that is no name for a cluster"},
		"with a full stop": {"c1.example", "that is no name for a cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := fabric.Start(t.Context(), nodes.Options{Name: tc.cluster})
			require.ErrorContains(t, err, tc.want)
		})
	}
	require.NoError(t, fabric.Close())
	require.NoError(t, fabric.Close(), "closing twice is allowed")
	nodes.RequireNothingLeft(t, before)
}

func TestAllProgramsOfANodeMustBeThere(t *testing.T) {
	binaries, err := nodes.FindBinaries(t.Context())
	require.NoError(t, err)
	again, err := nodes.BesideBinaries(binaries.Binaries)
	require.NoError(t, err)
	require.Equal(t, binaries, again)

	partial := binaries.Binaries
	partial.APIServer = filepath.Join(t.TempDir(), "kube-apiserver")
	_, err = nodes.BesideBinaries(partial)
	require.ErrorContains(t, err, "kube-scheduler")
	require.ErrorContains(t, err, "make kubernetes")
}
