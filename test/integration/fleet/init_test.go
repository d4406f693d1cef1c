// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/config/crd"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
)

func TestInitInstallsAndTheSecondRunChangesNothing(t *testing.T) {
	t.Parallel()
	hub, other := harness.Fresh(t, "hub"), harness.Fresh(t, "other")
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

	timeout := runsOut(t, "", "timed out after %s waiting for deployment/cluster-manager", "hub", "init", "--context", "hub")
	require.Contains(t, timeout.err, "cause: ")
	require.Contains(t, timeout.err, "fix: ")

	foreignParts(t, hub)
	placed(t, hub)
	early := noNode(t, hub)
	require.Equal(t, 1, early.code, "it does not wait for what does not come")
	require.Contains(t, early.err, "0/1 nodes are available")
	upgrades(t, hub)

	_, err = other.Dynamic(t).Resource(namespaces).Get(t.Context(), "open-cluster-management", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "the current context is another one: %v", err)

	require.Zero(t, run(t, "hub", "clean", "--context", "hub", "--yes", "--timeout", "5m").code, "no hub process runs here")
	require.Contains(t, run(t, "hub", "clean", "--context", "hub", "--yes").out, "unchanged")
	keptAPIs(t, hub)
}

// keptAPIs: a hub that is set to leave its APIs stays so when it is installed again, and the plugin
// leaves them, too, with what users have there, and says so. No process of it runs.
func keptAPIs(t *testing.T, hub *harness.Cluster) {
	init := []string{"hub", "init", "--context", "hub", "--wait=false"}
	require.Zero(t, run(t, init...).code)
	api := hub.Dynamic(t).Resource(deployments).Namespace("open-cluster-management")
	_, err := api.Patch(t.Context(), "cluster-manager", types.StrategicMergePatchType, []byte(`{"spec":{"template":{"spec":{"containers":[
		{"name":"cluster-manager","args":["run","--skip-remove-crds"]}]}}}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	require.Zero(t, run(t, init...).code)
	u, err := api.Get(t.Context(), "cluster-manager", metav1.GetOptions{})
	require.NoError(t, err)
	d, err := typed.FromUnstructured[appsv1.Deployment](u)
	require.NoError(t, err)
	require.Equal(t, []string{"run", "--skip-remove-crds"}, d.Spec.Template.Spec.Containers[0].Args)

	const name = "managedclusters.cluster.open-cluster-management.io"
	definition, err := crd.Any(name)
	require.NoError(t, err)
	definition.SetLabels(map[string]string{"open-cluster-management.io/created-by-clustermanager": "cluster-manager"})
	_, err = hub.Dynamic(t).Resource(definitions).Create(t.Context(), definition, metav1.CreateOptions{})
	require.NoError(t, err)
	eventually(t, func() bool {
		_, err = hub.Dynamic(t).Resource(clusters).Create(t.Context(), object("cluster.open-cluster-management.io/v1", "ManagedCluster", "", "c1", nil),
			metav1.CreateOptions{})
		return err == nil
	}, patience, 100*time.Millisecond, "%v", &err)

	clean := []string{"hub", "clean", "--context", "hub", "--yes", "--force", "--timeout", "5m"}
	plan := run(t, append(clean, "--dry-run")...)
	require.NotContains(t, plan.out, name)
	require.Equal(t, 6, run(t, "hub", "clean", "--context", "hub", "--yes").code, "a cluster is attached")
	done := run(t, clean...)
	require.Zero(t, done.code, done.err)
	require.Contains(t, done.err, "1 API is kept with all objects of users")
	kept, err := hub.Dynamic(t).Resource(clusters).Get(t.Context(), "c1", metav1.GetOptions{})
	require.NoError(t, err)
	require.Nil(t, kept.GetDeletionTimestamp())
	again := run(t, clean...)
	require.Contains(t, again.out, "unchanged")
	require.Contains(t, again.err, "hub init --context hub, which takes them over")
	require.Contains(t, run(t, init...).out, "created")
}

// foreignParts adds what another tool might add to the hub's Deployment; hub init repairs
// it.
func foreignParts(t *testing.T, hub *harness.Cluster) {
	api := hub.Dynamic(t).Resource(deployments).Namespace("open-cluster-management")
	patch := `{"spec":{"replicas":3,"template":{"spec":{"containers":[{"name":"miner","image":"example.com/miner:1"},
		{"name":"cluster-manager","image":"example.com/other:1"}]}}}}`
	_, err := api.Patch(t.Context(), "cluster-manager", types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "stranger"})
	require.NoError(t, err)
	require.Contains(t, run(t, "hub", "init", "--context", "hub", "--wait=false").out, "configured")
	u, err := api.Get(t.Context(), "cluster-manager", metav1.GetOptions{})
	require.NoError(t, err)
	d, err := typed.FromUnstructured[appsv1.Deployment](u)
	require.NoError(t, err)
	require.Len(t, d.Spec.Template.Spec.Containers, 1)
	require.Contains(t, d.Spec.Template.Spec.Containers[0].Image, "ocm-hub")
	require.EqualValues(t, 1, *d.Spec.Replicas)
	require.Contains(t, run(t, "hub", "init", "--context", "hub", "--wait=false").out, "unchanged")
}

// placed declares where the one pod of the hub runs, and what it requests: hub init makes its
// Deployment follow, both ways.
func placed(t *testing.T, hub *harness.Cluster) {
	init := func(spec string) (string, appsv1.Deployment) {
		_, err := hub.Dynamic(t).Resource(clusterManagers).Patch(t.Context(), "cluster-manager", types.MergePatchType, []byte(spec), metav1.PatchOptions{})
		require.NoError(t, err)
		done := run(t, "hub", "init", "--context", "hub", "--wait=false")
		require.Zero(t, done.code)
		u, err := hub.Dynamic(t).Resource(deployments).Namespace("open-cluster-management").Get(t.Context(), "cluster-manager", metav1.GetOptions{})
		require.NoError(t, err)
		d, err := typed.FromUnstructured[appsv1.Deployment](u)
		require.NoError(t, err)
		return done.out, *d
	}
	out, d := init(`{"spec":{"nodePlacement":{"nodeSelector":{"role":"infra"},"tolerations":[{"key":"infra","operator":"Exists"}]},
		"resourceRequirement":{"type":"BestEffort"}}}`)
	require.Contains(t, out, "configured")
	require.Equal(t, map[string]string{"role": "infra"}, d.Spec.Template.Spec.NodeSelector)
	require.Equal(t, "infra", d.Spec.Template.Spec.Tolerations[0].Key)
	require.Empty(t, d.Spec.Template.Spec.Containers[0].Resources)
	_, d = init(`{"spec":{"nodePlacement":null,"resourceRequirement":null}}`)
	require.Empty(t, d.Spec.Template.Spec.NodeSelector)
	require.Empty(t, d.Spec.Template.Spec.Tolerations)
	require.NotEmpty(t, d.Spec.Template.Spec.Containers[0].Resources)
}

// upgrades moves the hub to another release as the guide says, and does not move it back.
func upgrades(t *testing.T, hub *harness.Cluster) {
	from := []string{"hub", "init", "--context", "hub", "--wait=false", "--version", "v0.1.0", "--image-registry", "registry.example.org/ocm", "--replicas", "2"}
	require.Zero(t, run(t, from...).code)
	image := func() string {
		u, err := hub.Dynamic(t).Resource(deployments).Namespace("open-cluster-management").Get(t.Context(), "cluster-manager", metav1.GetOptions{})
		require.NoError(t, err)
		d, err := typed.FromUnstructured[appsv1.Deployment](u)
		require.NoError(t, err)
		require.EqualValues(t, 2, *d.Spec.Replicas)
		return d.Spec.Template.Spec.Containers[0].Image
	}
	text, err := os.ReadFile("../../../docs/guides/upgrade.md")
	require.NoError(t, err)
	var lines [][]string
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "kubectl ocm hub ") {
			lines = append(lines, append(strings.Fields(line)[2:], "--version", "v0.2.0", "--wait=false"))
		}
	}
	require.Len(t, lines, 2)
	plan := run(t, lines[0]...)
	require.Zero(t, plan.code)
	require.Regexp(t, `replaced +deployment.apps/cluster-manager +open-cluster-management`, plan.out)
	require.Contains(t, plan.out, "would be upgraded")
	require.Equal(t, "registry.example.org/ocm/ocm-hub:v0.1.0", image())
	require.Contains(t, run(t, lines[1]...).out, "from v0.1.0 to v0.2.0 (configured)")
	require.Equal(t, "registry.example.org/ocm/ocm-hub:v0.2.0", image())
	require.Contains(t, run(t, lines[1]...).out, "from v0.2.0 to v0.2.0 (unchanged)")
	older := run(t, "hub", "upgrade", "--context", "hub", "--version", "v0.1.9", "--wait=false")
	require.Equal(t, 6, older.code)
	require.Contains(t, older.err, "it has v0.2.0, and v0.1.9 is older")
	require.Equal(t, "registry.example.org/ocm/ocm-hub:v0.2.0", image())
}

// noNode marks the hub's pods as a scheduler does that finds no node for them, once those of the
// Deployment as it is now are there, and waits for the hub.
func noNode(t *testing.T, hub *harness.Cluster) said {
	const namespace = "open-cluster-management"
	until(t, func() error {
		d, err := typed.Get[appsv1.Deployment](t.Context(), hub.Dynamic(t), deployments, namespace, "cluster-manager")
		require.NoError(t, err)
		if now := d.Status; now.ObservedGeneration != d.Generation || now.UpdatedReplicas != *d.Spec.Replicas {
			return fmt.Errorf("the pods of generation %d are not all there: %+v", d.Generation, now)
		}
		return nil
	})
	api := hub.Dynamic(t).Resource(pods).Namespace(namespace)
	list, err := api.List(t.Context(), metav1.ListOptions{LabelSelector: "app=cluster-manager"})
	require.NoError(t, err)
	require.NotEmpty(t, list.Items)
	status := fmt.Sprintf(`{"status":{"conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable",
		"message":"0/1 nodes are available","lastTransitionTime":%q}]}}`,
		time.Now().Add(-time.Hour).UTC().Format(time.RFC3339))
	for i := range list.Items {
		if list.Items[i].GetDeletionTimestamp() == nil {
			_, err := api.Patch(t.Context(), list.Items[i].GetName(), types.StrategicMergePatchType, []byte(status), metav1.PatchOptions{}, "status")
			require.NoError(t, err)
		}
	}
	return run(t, "hub", "init", "--context", "hub", "--timeout", "5m")
}
