// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nodes

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kubectl-ocm/kubectl-ocm/test/playground/process"
)

// tailLines is how much of each program's log a failed test shows.
const tailLines = 8

// Start starts clusters on a fabric of their own, all at once, and returns them in the
// order of the options. At the end of the test they are stopped and the machine is
// compared with its state before: anything left behind fails the test. If the test
// failed, the logs of all programs are kept among its artifacts (go test -artifacts) and
// the ends of the logs are printed.
func Start(t testing.TB, options ...Options) []*Cluster {
	t.Helper()
	binaries, err := FindBinaries(t.Context())
	require.NoError(t, err)
	before, err := TakeInventory()
	require.NoError(t, err)
	fabric, err := NewFabric(t.Context(), binaries)
	require.NoError(t, err)
	clusters := make([]*Cluster, len(options))
	t.Cleanup(func() {
		if t.Failed() {
			fabric.keepLogs(t)
		}
		require.NoError(t, fabric.Close())
		RequireNothingLeft(t, before)
	})
	var group errgroup.Group
	for i, one := range options {
		group.Go(func() error {
			var err error
			clusters[i], err = fabric.Start(t.Context(), one)
			return err
		})
	}
	require.NoError(t, group.Wait())
	return clusters
}

// RequireNothingLeft compares the machine with an earlier inventory and fails the test
// with what is new. It retries for ten seconds: the cleanup of a cell may still be under
// way when its starter was killed. What belongs to other processes that run clusters of
// their own does not count.
func RequireNothingLeft(t testing.TB, before Inventory) {
	t.Helper()
	var left []string
	gone := func(context.Context) (bool, error) {
		after, err := TakeInventory()
		left = before.Added(after.withoutOthers())
		return len(left) == 0, err
	}
	err := wait.PollUntilContextTimeout(context.Background(), pollEvery, 10*time.Second, true, gone)
	require.NoError(t, err, "the clusters left this behind: %q", left)
}

// keepLogs saves the logs of all programs, which are removed with their clusters.
func (f *Fabric) keepLogs(t testing.TB) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for _, c := range f.clusters {
		for _, component := range Components() {
			t.Logf("end of %s of %s:\n%s", component, c.Name, process.Tail(c.LogFile(component), tailLines))
			target := filepath.Join(t.ArtifactDir(), c.Name+"-"+string(component)+".log")
			if err := copyFile(c.LogFile(component), target); err != nil {
				t.Logf("keeping the log of %s of %s: %v", component, c.Name, err)
			}
		}
	}
}

func copyFile(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.Create(to)
	if err != nil {
		return err
	}
	if _, err := io.Copy(target, source); err != nil {
		return err
	}
	return target.Close()
}
