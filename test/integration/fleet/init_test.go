// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
)

func TestInitInstallsAndTheSecondRunChangesNothing(t *testing.T) {
	hub, other := harness.ControlPlane(t, "hub"), harness.ControlPlane(t, "other")
	kubeconfig(t, other, hub)

	dry := run(t, "hub", "init", "--context", "hub", "--dry-run")
	require.Zero(t, dry.code)
	require.Contains(t, dry.out, "kind: ClusterManager")
	_, err := hub.Dynamic(t).Resource(definitions).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)

	require.Equal(t, 1, run(t, "hub", "status", "--context", "hub").code)

	first := run(t, "hub", "init", "--context", "hub", "--wait=false")
	require.Zero(t, first.code)
	require.Contains(t, first.out, "created")

	second := run(t, "hub", "init", "--context", "hub", "--wait=false")
	require.Zero(t, second.code)
	require.Contains(t, second.out, "unchanged")

	diff := run(t, "hub", "init", "--context", "hub", "--diff")
	require.Zero(t, diff.code, "nothing differs")

	timeout := run(t, "hub", "init", "--context", "hub", "--timeout", "3")
	require.Equal(t, 4, timeout.code)
	require.Contains(t, timeout.err, "timed out after 3s waiting for deployment/cluster-manager")
	require.Contains(t, timeout.err, "cause: ")
	require.Contains(t, timeout.err, "fix: ")

	_, err = other.Dynamic(t).Resource(namespaces).Get(t.Context(), "open-cluster-management", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "the current context is another one: %v", err)

	require.Zero(t, run(t, "hub", "clean", "--context", "hub", "--yes", "--timeout", "60s").code, "no hub process runs here")
	require.Contains(t, run(t, "hub", "clean", "--context", "hub", "--yes").out, "unchanged")
}
