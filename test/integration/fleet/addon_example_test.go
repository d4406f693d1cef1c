// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/inpod"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness/memory"
)

// The maximum memory of the example's agent at rest, in bytes.
const (
	maxAgentAnon     = 7 << 20
	maxAgentResident = 30 << 20
)

var deployments = appsv1.SchemeGroupVersion.WithResource("deployments")

// example is a hub and a cluster for the add-on of examples/helloworld-addon.
type example struct {
	hub, c1 *harness.Cluster
	program string
}

// TestTheExampleAddOn runs exactly the commands of docs/guides/addon.md, in their order,
// with the real processes of hub, agent and add-on.
func TestTheExampleAddOn(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../../docs/guides/addon.md")
	require.NoError(t, err)
	deploy, err := os.ReadFile("../../../examples/helloworld-addon/deploy.yaml")
	require.NoError(t, err)
	small := regexp.MustCompile("(?ms)^```yaml\n(# small.yaml\n.*?)^```$").FindSubmatch(guide)
	require.NotNil(t, small)
	e := &example{program: harness.Program(t, "examples/helloworld-addon")}
	e.hub = harness.FreshWithNode(t, "hub", map[string]string{"ocm-hub": harness.Program(t, "controllers/ocm-hub"), "helloworld-addon": e.program})
	e.c1 = harness.FreshWithNode(t, "c1", map[string]string{"ocm-agent": harness.Program(t, "controllers/ocm-agent"), "helloworld-addon": e.program})
	kubeconfig(t, e.hub, e.c1)
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "small.yaml"), small[1], 0o600))
	require.Zero(t, run(t, "hub", "init", "--context", "hub", "--timeout", "5m").code)
	require.Zero(t, run(t, "join", "c1", "--context", "c1", "--hub-context", "hub", "--accept", "--timeout", "5m").code)

	var lines []string
	for line := range strings.Lines(string(guide)) {
		if strings.HasPrefix(line, "kubectl ") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	steps := []struct {
		line string
		does func(t *testing.T)
	}{
		{"kubectl apply -f examples/helloworld-addon/deploy.yaml --context hub", func(t *testing.T) { e.apply(t, deploy) }},
		{"kubectl ocm addon enable helloworld -c c1 --install-namespace default --context hub --wait", e.available},
		{"kubectl create configmap greeting -n c1 --from-literal=hello=world --context hub", e.greet},
		{"kubectl get configmap greeting -n default -o yaml --context c1", e.copied},
		{"kubectl ocm addon status helloworld --context hub", e.small},
		{"kubectl ocm addon enable helloworld -c c1 --config small.yaml --context hub", e.configured},
		{"kubectl ocm addon disable helloworld -c c1 --context hub --yes", e.requireRemoved},
		{"kubectl ocm addon delete helloworld --context hub --yes", func(*testing.T) {}},
	}
	require.Len(t, lines, len(steps))
	for i, step := range steps {
		require.Equal(t, step.line, lines[i])
		if words, ours := strings.CutPrefix(step.line, "kubectl ocm "); ours {
			require.Zero(t, run(t, paths(folder, strings.Fields(words))...).code)
		}
		step.does(t)
	}
}

// apply writes the objects of a file to the hub.
func (e *example) apply(t *testing.T, file []byte) {
	for part := range bytes.SplitSeq(file, []byte("\n---\n")) {
		u := &unstructured.Unstructured{}
		require.NoError(t, yaml.Unmarshal(part, &u.Object))
		_, err := e.hub.Dynamic(t).Resource(reconcile.ResourceOf(u.GroupVersionKind())).Namespace(u.GetNamespace()).
			Apply(t.Context(), u.GetName(), u, metav1.ApplyOptions{FieldManager: "test"})
		require.NoError(t, err)
	}
}

// until waits until wrong returns nil.
func until(t *testing.T, wrong func() error) {
	t.Helper()
	var err error
	harness.Until(patience, func() bool {
		err = wrong()
		return err == nil
	})
	require.NoError(t, err)
}

// absent waits until the object does not exist.
func absent(t *testing.T, c *harness.Cluster, resource schema.GroupVersionResource, namespace, name string) {
	t.Helper()
	until(t, func() error {
		_, err := c.Dynamic(t).Resource(resource).Namespace(namespace).Get(t.Context(), name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("%s %s/%s is there: %w", resource.Resource, namespace, name, err)
	})
}

// available requires that the add-on works, judged by the lease of its agent.
func (e *example) available(t *testing.T) { require.NoError(t, e.unavailable(t)) }

// unavailable returns what the add-on lacks to work.
func (e *example) unavailable(t *testing.T) error {
	addOn, err := typed.Get[addonv1alpha1.ManagedClusterAddOn](t.Context(), e.hub.Dynamic(t), instances, "c1", "helloworld")
	if err != nil {
		return err
	}
	condition := apimeta.FindStatusCondition(addOn.Status.Conditions, addonv1alpha1.ConditionAvailable)
	if condition == nil || condition.Reason != addonv1alpha1.ReasonLeaseUpdated {
		return fmt.Errorf("its lease does not show that it works: %v", condition)
	}
	if addOn.Status.Namespace != "default" {
		return fmt.Errorf("its namespace is %q", addOn.Status.Namespace)
	}
	return nil
}

func (e *example) greet(t *testing.T) {
	_, err := e.hub.Dynamic(t).Resource(configMaps).Namespace("c1").
		Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{
				"name": "greeting",
			}, "data": map[string]any{
				"hello": "world",
			},
		}}, metav1.CreateOptions{})
	require.NoError(t, err)
}

// has waits until the cluster has a copy with this text.
func (e *example) has(t *testing.T, name, text string) {
	t.Helper()
	until(t, func() error {
		c, err := typed.Get[corev1.ConfigMap](t.Context(), e.c1.Dynamic(t), configMaps, "default", name)
		if err != nil {
			return err
		}
		if c.Data["hello"] != text || c.Labels["synced-from-hub"] != "helloworld" {
			return fmt.Errorf("it is %v, with the labels %v", c.Data, c.Labels)
		}
		return nil
	})
}

// copied checks that the ConfigMap is on the cluster, follows its source, and is
// repaired.
func (e *example) copied(t *testing.T) {
	e.has(t, "greeting", "world")
	hub, c1 := e.hub.Dynamic(t).Resource(configMaps).Namespace("c1"), e.c1.Dynamic(t).Resource(configMaps).Namespace("default")
	u, err := hub.Get(t.Context(), "greeting", metav1.GetOptions{})
	require.NoError(t, err)
	require.NoError(t, unstructured.SetNestedField(u.Object, "you", "data", "hello"))
	_, err = hub.Update(t.Context(), u, metav1.UpdateOptions{})
	require.NoError(t, err)
	e.has(t, "greeting", "you")
	require.NoError(t, c1.Delete(t.Context(), "greeting", metav1.DeleteOptions{}))
	e.has(t, "greeting", "you")

	u.SetName("short-lived")
	u.SetResourceVersion("")
	_, err = hub.Create(t.Context(), u, metav1.CreateOptions{})
	require.NoError(t, err)
	e.has(t, "short-lived", "you")
	require.NoError(t, hub.Delete(t.Context(), "short-lived", metav1.DeleteOptions{}))
	absent(t, e.c1, configMaps, "default", "short-lived")
}

// small checks that an agent at rest uses little memory.
func (e *example) small(t *testing.T) {
	if runtime.GOOS != "linux" {
		return // no one else reports it
	}
	pid := 0
	processes, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(t, err)
	for _, file := range processes {
		command, _ := os.ReadFile(file)
		variables, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "environ"))
		ours := strings.Contains(string(variables), inpod.EnvRoot+"="+e.c1.Playground.Dir)
		if ours && strings.HasPrefix(string(command), e.program+"\x00agent\x00") {
			require.Zero(t, pid, "there are two agents")
			pid, err = strconv.Atoi(filepath.Base(filepath.Dir(file)))
			require.NoError(t, err)
		}
	}
	until(t, func() error {
		held, err := memory.Of(pid)
		if err != nil {
			return err
		}
		if held.Anon > maxAgentAnon || held.Resident > maxAgentResident {
			return fmt.Errorf("it holds too much: %s", held)
		}
		t.Logf("measured: the agent of the add-on: %s", held)
		return nil
	})
}

// configured checks that the configuration reaches the Deployment.
func (e *example) configured(t *testing.T) {
	until(t, func() error {
		d, err := typed.Get[appsv1.Deployment](t.Context(), e.c1.Dynamic(t), deployments, "default", "helloworld-agent")
		if err != nil {
			return err
		}
		if limit := d.Spec.Template.Spec.Containers[0].Resources.Limits.Memory().String(); limit != "48Mi" {
			return fmt.Errorf("its limit is %s", limit)
		}
		return nil
	})
}

// requireRemoved checks that the removed add-on has left nothing that it was installed
// with or created.
func (e *example) requireRemoved(t *testing.T) {
	absent(t, e.hub, instances, "c1", "helloworld")
	absent(t, e.c1, deployments, "default", "helloworld-agent")
	absent(t, e.c1, configMaps, "default", "greeting")
	absent(t, e.c1, coordinationv1.SchemeGroupVersion.WithResource("leases"), "default", "helloworld")
	_, err := e.hub.Dynamic(t).Resource(configMaps).Namespace("c1").Get(t.Context(), "greeting", metav1.GetOptions{})
	require.NoError(t, err, "the source stays")
}
