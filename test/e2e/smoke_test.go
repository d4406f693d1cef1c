// SPDX-License-Identifier: Apache-2.0

//go:build e2e && linux

package e2e_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/test/harness/nodes"
)

// TestClustersRunPods checks what every other test here depends on: two clusters run pods
// of the project's images, serve them, and can be cut off from each other.
func TestClustersRunPods(t *testing.T) {
	archive := image(t, "webdemo")
	begin := time.Now()
	clusters := nodes.Start(t, nodes.Options{Name: "hub"}, nodes.Options{Name: "c1", Images: []string{archive}})
	t.Logf("two clusters started in %.1f s", time.Since(begin).Seconds())
	hub, c1 := clusters[0], clusters[1]

	manifests, err := filepath.Abs(filepath.Join(root, "examples/webdemo/manifests.yaml"))
	require.NoError(t, err)
	kubectl(t, c1, "apply", "-f", manifests)
	kubectl(t, c1, "wait", "--for=condition=Available", "deployment/webdemo", "--timeout=180s")
	t.Logf("its pod was available %.1f s after that", time.Since(begin).Seconds())

	t.Run("the Service answers through kube-apiserver", func(t *testing.T) {
		var page string
		eventually(t, func() (err error) {
			page, err = c1.Get(t.Context(), "/api/v1/namespaces/default/services/webdemo:http/proxy/")
			return err
		})
		for _, want := range []string{"<h1>Declared once on the hub</h1>", "<dd>c1</dd>", "<dd>" + version(t) + "</dd>"} {
			require.Contains(t, page, want)
		}
	})
	t.Run("the pod's log can be read", func(t *testing.T) {
		require.Contains(t, kubectl(t, c1, "logs", "deployment/webdemo"), "webdemo "+version(t)+" serves pod webdemo-")
	})
	t.Run("commands run in the pod", func(t *testing.T) {
		_, err := c1.Kubectl(t.Context(), "exec", "deployment/webdemo", "--", "/webdemo")
		require.ErrorContains(t, err, "listening on port 8080", "the second server of a pod finds its port taken")
	})
	t.Run("a cluster that is cut off is unreachable and whole", func(t *testing.T) {
		eventually(t, func() error { return reach(t, hub, c1) })
		require.NoError(t, c1.Cut(t.Context()))
		require.Error(t, reach(t, hub, c1))
		eventually(t, func() error { return reach(t, c1, c1) }) // inside nothing changes
		require.NoError(t, c1.Heal(t.Context()))
		eventually(t, func() error { return reach(t, hub, c1) })
	})
	t.Run("nothing outside is reachable", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		_, err := c1.Config.Dial(ctx, "tcp", "192.0.2.1:443")
		require.Error(t, err)
	})
	for _, c := range clusters {
		t.Logf("%s: %s", c.Name, residentIn(t, c))
	}
}

// reach calls kube-apiserver of one cluster from inside another.
func reach(t *testing.T, from, to *nodes.Cluster) error {
	_, err := from.Kubectl(t.Context(), "--kubeconfig="+to.Kubeconfig, "--request-timeout=2s", "get", "--raw", "/readyz")
	return err
}

// residentIn returns the total resident memory of the processes of a cluster.
func residentIn(t *testing.T, c *nodes.Cluster) string {
	processes, err := c.Processes()
	require.NoError(t, err)
	var all int64
	by := map[string]int64{}
	for _, one := range processes {
		by[one.Command] += one.Memory.Resident >> 20
		all += one.Memory.Resident >> 20
	}
	return fmt.Sprintf("%d MiB resident in all, by program: %v", all, by)
}
