// SPDX-License-Identifier: Apache-2.0

//go:build e2e && linux

package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/test/harness/nodes"
)

// work writes a ManifestWork with one ConfigMap of the same name, as the page of the API
// shows it, and returns the file.
func work(t *testing.T, cluster, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name+".yaml")
	body := fmt.Sprintf(`apiVersion: work.open-cluster-management.io/v1
kind: ManifestWork
metadata:
  namespace: %[1]s
  name: %[2]s
spec:
  workload:
    manifests:
    - apiVersion: v1
      kind: ConfigMap
      metadata:
        namespace: default
        name: %[2]s
      data:
        from: %[1]s
`, cluster, name)
	require.NoError(t, os.WriteFile(path, []byte(body), 0o600))
	return path
}

// kill ends the only process of a program in a cluster's pods without warning, and
// returns its PID.
func kill(t *testing.T, c *nodes.Cluster, program string) int {
	t.Helper()
	found := processes(t, c, program)
	require.Len(t, found, 1)
	require.NoError(t, syscall.Kill(found[0].PID, syscall.SIGKILL))
	return found[0].PID
}
