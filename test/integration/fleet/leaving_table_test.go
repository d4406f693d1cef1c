// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
)

var (
	workSets   = schema.GroupVersionResource{Group: "work.open-cluster-management.io", Version: "v1alpha1", Resource: "manifestworkreplicasets"}
	workRecord = schema.GroupVersionResource{Group: "work.open-cluster-management.io", Version: "v1", Resource: "appliedmanifestworks"}
)

// kubectl runs kubectl as a user would and returns its output and error.
func kubectl(t *testing.T, line string) (string, error) {
	t.Helper()
	binaries, err := harness.Binaries(t.Context())
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, binaries.Kubectl, strings.Fields(line)...)
	command.Env = environment(t)
	out, err := command.CombinedOutput()
	return string(out), err
}

// awaitSet waits until a condition of the work set default/shared has a status; an empty
// status means that the condition is absent.
func awaitSet(t *testing.T, hub *harness.Cluster, condition, status string) {
	t.Helper()
	until(t, func() error {
		set, err := hub.Dynamic(t).Resource(workSets).Namespace("default").Get(t.Context(), "shared", metav1.GetOptions{})
		if err != nil {
			return err
		}
		got := ""
		conditions, _, _ := unstructured.NestedSlice(set.Object, "status", "conditions")
		for _, c := range conditions {
			if c, ok := c.(map[string]any); ok && c["type"] == condition {
				got, _ = c["status"].(string)
			}
		}
		if got != status {
			return fmt.Errorf("%s is %q", condition, got)
		}
		return nil
	})
}

// awaitRunning waits until exactly these objects of works run on a cluster.
func awaitRunning(t *testing.T, c *harness.Cluster, want map[string]string) {
	t.Helper()
	eventually(t, func() bool { return len(running(t, c)) == len(want) }, patience, 100*time.Millisecond)
	require.Equal(t, want, running(t, c))
}

// whoLeaves goes through the table of docs/guides/leaving.md: what leaves while both
// clusters keep their agents, and what then runs on them. The hub is the second cluster.
// Everything is as before when it returns.
func whoLeaves(t *testing.T, hub, spoke *harness.Cluster) {
	first := running(t, spoke)
	require.Len(t, first, inherited+1)
	require.Zero(t, run(t, "join", "cluster2", "--context", "hub", "--hub-context", "hub", "--accept", "--timeout", "5m").code)
	second := map[string]string{}
	eventually(t, func() bool { second = running(t, hub); return len(second) == 1 }, patience, 100*time.Millisecond)
	awaitSet(t, hub, "ManifestworkApplied", "True")

	// A binding that goes takes every cluster from the placement: nothing is removed.
	require.Zero(t, run(t, "clusterset", "unbind", "global", "-n", "default", "--context", "hub", "--yes").code)
	awaitSet(t, hub, "RemovalHeld", "True")
	require.Equal(t, first, running(t, spoke))
	require.Equal(t, second, running(t, hub))
	require.Zero(t, run(t, "clusterset", "bind", "global", "-n", "default", "--context", "hub").code)
	awaitSet(t, hub, "RemovalHeld", "")

	// A placement that goes leaves its works.
	require.Zero(t, run(t, "placement", "delete", "everywhere", "-n", "default", "--context", "hub", "--yes").code)
	awaitSet(t, hub, "PlacementVerified", "False")
	require.Equal(t, first, running(t, spoke))
	require.Equal(t, second, running(t, hub))
	require.Zero(t, run(t, "placement", "create", "everywhere", "-n", "default", "--context", "hub").code)
	awaitSet(t, hub, "PlacementVerified", "True")

	// One cluster that leaves a placement loses its objects: that is how works move.
	for _, name := range []string{"cluster1", "cluster2"} {
		typeLine(t, "kubectl label managedcluster "+name+" stage=prod --context hub")
	}
	selector := `{"spec":{"predicates":[{"requiredClusterSelector":{"labelSelector":{"matchLabels":{"stage":"prod"}}}}]}}`
	patched(t, hub, placements, "default", "everywhere", selector)
	typeLine(t, "kubectl label managedcluster cluster2 stage- --context hub")
	awaitRunning(t, hub, map[string]string{})
	require.Equal(t, first, running(t, spoke))
	patched(t, hub, placements, "default", "everywhere", `{"spec":{"predicates":null}}`)
	eventually(t, func() bool { return len(running(t, hub)) == 1 }, patience, 100*time.Millisecond)

	// The namespace of a cluster stays while works are in it.
	said, err := kubectl(t, "delete namespace cluster1 --context hub")
	require.Error(t, err)
	require.Contains(t, said, "kubectl ocm cluster remove cluster1")
	require.Equal(t, first, running(t, spoke))

	// A cluster that leaves for good takes its objects along, and nobody else's.
	own := strings.ReplaceAll(configMap, "greeting", "greeting-of-two")
	require.Zero(t, runWith(t, own, "work", "apply", "two", "-f", "-", "-c", "cluster2", "--context", "hub", "--wait", "--timeout", "5m").code)
	require.Len(t, running(t, hub), 2)
	require.Zero(t, run(t, "unjoin", "cluster2", "--context", "hub", "--hub-context", "hub", "--yes", "--timeout", "5m").code)
	require.Empty(t, running(t, hub))
	require.Equal(t, first, running(t, spoke))

	// A work takes its own object along, a set the objects of its works.
	without := func(name string) map[string]string {
		out := running(t, spoke)
		delete(out, name)
		return out
	}
	left := without("greeting0")
	require.Zero(t, run(t, "work", "delete", "web0", "-c", "cluster1", "--context", "hub", "--yes").code)
	require.Equal(t, left, running(t, spoke))
	left = without("greeting-of-a-set")
	require.Zero(t, run(t, "work", "delete", "shared", "--placement", "default/everywhere", "--context", "hub", "--yes").code)
	require.Equal(t, left, running(t, spoke))
	deploy(t)

	// A Klusterlet that is deleted leaves the objects and their records.
	before := running(t, spoke)
	typeLine(t, "kubectl delete klusterlet klusterlet --context spoke")
	require.Equal(t, before, running(t, spoke))
	records, err := spoke.Dynamic(t).Resource(workRecord).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, records.Items, inherited+1)
	for _, namespace := range []string{"open-cluster-management-agent", "open-cluster-management-agent-addon"} {
		typeLine(t, "kubectl wait --for=delete namespace/"+namespace+" --timeout=5m --context spoke")
	}
	refused := run(t, "join", "cluster1", "--context", "spoke", "--hub-context", "hub", "--accept", "--timeout", "5m")
	require.Equal(t, 6, refused.code, "its lease is fresh, and nothing says that it was the agent of this cluster")
	_, command, found := strings.Cut(strings.TrimSpace(refused.err), "if that agent was of this cluster and is gone: ")
	require.True(t, found, refused.err)
	typeLine(t, command)
	deploy(t)
	require.Equal(t, before, running(t, spoke), "the agent that comes back takes up its objects")
}
