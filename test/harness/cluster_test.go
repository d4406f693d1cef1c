// SPDX-License-Identifier: Apache-2.0

package harness_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubectl-ocm/kubectl-ocm/config/crd"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
)

// victim is the variable that turns this test binary into a process that starts a cluster
// and waits.
const victim = "OCM_HARNESS_VICTIM"

// patience bounds every wait.
const patience = 3 * time.Minute

var (
	secrets      = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	namespaces   = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	pods         = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	kinds        = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	appliedWorks = schema.GroupVersionResource{Group: "work.open-cluster-management.io", Version: "v1", Resource: "appliedmanifestworks"}
)

func TestAServiceAccountHasItsOwnRightsAndNoMore(t *testing.T) {
	cluster := harness.Shared(t, "hub")
	_, err := cluster.Dynamic(t).Resource(secrets).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)

	client, err := dynamic.NewForConfig(cluster.As(t, "somewhere", "someone"))
	require.NoError(t, err)
	_, err = client.Resource(secrets).List(t.Context(), metav1.ListOptions{})
	require.True(t, apierrors.IsForbidden(err), "want forbidden, got %v", err)
	require.ErrorContains(t, err, "system:serviceaccount:somewhere:someone")
}

func TestNothingIsLeftAfterATest(t *testing.T) {
	var dir string
	t.Run("inner", func(t *testing.T) {
		cluster := harness.ControlPlane(t, "c1")
		dir = cluster.Playground.Dir
		require.Len(t, processesOf(t, dir), 3)
	})
	require.Empty(t, processesOf(t, dir))
	require.NoDirExists(t, filepath.Dir(dir))
}

func TestNothingIsLeftWhenTheTestProcessIsKilled(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	child := exec.CommandContext(t.Context(), self, "-test.run=^TestVictim$")
	child.Env = append(os.Environ(), victim+"=1")
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	t.Cleanup(func() { _ = child.Process.Kill() }) // again, in case the test failed before it
	dir, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	dir = strings.TrimSpace(dir)
	require.Len(t, processesOf(t, dir), 3)

	require.NoError(t, child.Process.Kill())
	require.Error(t, child.Wait())
	require.Eventually(t, func() bool {
		_, err := os.Stat(filepath.Dir(dir))
		return os.IsNotExist(err)
	}, patience, 20*time.Millisecond)
	require.Empty(t, processesOf(t, dir))
}

// TestVictim is the process that TestNothingIsLeftWhenTheTestProcessIsKilled kills.
func TestVictim(t *testing.T) {
	if os.Getenv(victim) == "" {
		return
	}
	cluster := harness.ControlPlane(t, "victim")
	_, err := os.Stdout.WriteString(cluster.Playground.Dir + "\n")
	require.NoError(t, err)
	<-t.Context().Done()
}

// TestAClusterIsBroughtBack uses one cluster twice: the second test finds nothing that
// the first one created.
func TestAClusterIsBroughtBack(t *testing.T) {
	var server string
	seen := map[types.UID]bool{}
	for _, name := range []string{"first", "second", "third"} {
		t.Run(name, func(t *testing.T) {
			c := harness.Fresh(t, name)
			kubeconfig, err := clientcmd.LoadFromFile(c.Kubeconfig)
			require.NoError(t, err)
			require.Equal(t, name, kubeconfig.CurrentContext)
			require.Contains(t, []string{"", c.Config.Host}, server, "another cluster was started")
			server = c.Config.Host
			client := c.Dynamic(t)
			system, err := client.Resource(namespaces).Get(t.Context(), "kube-system", metav1.GetOptions{})
			require.NoError(t, err)
			require.False(t, seen[system.GetUID()], "the identity is that of an earlier test")
			seen[system.GetUID()] = true

			ns := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "mine"}}}
			_, err = client.Resource(namespaces).Create(t.Context(), ns, metav1.CreateOptions{})
			require.NoError(t, err)
			definitions, err := crd.Agent()
			require.NoError(t, err)
			for _, d := range definitions {
				_, err := client.Resource(kinds).Create(t.Context(), d, metav1.CreateOptions{})
				require.NoError(t, err)
			}
			work := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "work.open-cluster-management.io/v1", "kind": "AppliedManifestWork", "metadata": map[string]any{
					"name": "work",
				},
				"spec": map[string]any{"hubHash": "h", "manifestWorkName": "work"},
			}}
			require.True(t, harness.Until(patience, func() bool {
				_, err := client.Resource(appliedWorks).Create(t.Context(), work, metav1.CreateOptions{})
				return err == nil
			}), "an object of an earlier test is there, or the kind is not served")
		})
	}
}

// TestAClusterWithANodeIsBroughtBack uses one cluster twice: what ran on its node has ended, and
// another program runs there.
func TestAClusterWithANodeIsBroughtBack(t *testing.T) {
	program := harness.Program(t, "test/integration/playground/podapp")
	var dir string
	for _, image := range []string{"first", "second"} {
		t.Run(image, func(t *testing.T) {
			c := harness.FreshWithNode(t, image, map[string]string{image: program})
			require.Contains(t, []string{"", c.Playground.Dir}, dir, "another cluster was started")
			dir = c.Playground.Dir
			logs, err := filepath.Glob(filepath.Join(dir, "logs", "*"))
			require.NoError(t, err)
			require.Empty(t, logs)
			in := c.Dynamic(t).Resource(pods).Namespace("default")
			listed, err := in.List(t.Context(), metav1.ListOptions{})
			require.NoError(t, err)
			require.Empty(t, listed.Items)
			_, err = in.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "app"},
				"spec": map[string]any{"containers": []any{map[string]any{"name": "app", "image": "example.com/" + image + ":v1"}}},
			}}, metav1.CreateOptions{})
			require.NoError(t, err)
			var pod *unstructured.Unstructured
			require.True(t, harness.Until(patience, func() bool {
				pod, err = in.Get(t.Context(), "app", metav1.GetOptions{})
				require.NoError(t, err)
				phase, _, _ := unstructured.NestedString(pod.Object, "status", "phase")
				return phase == "Running"
			}), "%v", pod)
		})
		require.Len(t, processesOf(t, dir), 3, "only the control plane runs")
		require.NoDirExists(t, filepath.Join(dir, "pods"), "each pod has a folder there until its processes have ended")
	}
}
