// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
)

// sharedDefinition is a definition that all agents of a cluster need.
const sharedDefinition = "appliedmanifestworks.work.open-cluster-management.io"

// TestAClusterBelongsToTwoHubs joins a cluster to two hubs, each with an agent of its own. When
// either leaves, the other keeps what it runs and what both need.
func TestAClusterBelongsToTwoHubs(t *testing.T) {
	t.Parallel()
	agent := harness.Program(t, "controllers/ocm-agent")
	images := map[string]string{"ocm-hub": harness.Program(t, "controllers/ocm-hub")}
	hub, second := harness.FreshWithNode(t, "hub", images), harness.FreshWithNode(t, "second", images)
	spoke := harness.FreshWithNode(t, "spoke", map[string]string{"ocm-agent": agent})
	kubeconfig(t, hub, second, spoke)
	empty := inventory(t, spoke)
	for _, context := range []string{"hub", "second"} {
		require.Zero(t, run(t, "hub", "init", "--context", context, "--timeout", "5m").code)
	}
	first := []string{"join", "cluster1", "--context", "spoke", "--hub-context", "hub", "--accept", "--timeout", "5m"}
	require.Zero(t, run(t, first...).code)
	further := []string{"join", "edge", "--context", "spoke", "--hub-context", "second", "--accept", "--timeout", "5m"}
	refused := run(t, further...)
	require.Equal(t, 6, refused.code)
	require.Contains(t, refused.err, `joined already, as "cluster1"`)
	further = append(further, "--klusterlet", "second")
	require.Zero(t, run(t, further...).code)
	require.Contains(t, run(t, further...).out, "unchanged")
	twice := run(t, "join", "cluster2", "--context", "spoke", "--hub-context", "hub", "--klusterlet", "third")
	require.Equal(t, 6, twice.code)
	require.Contains(t, twice.err, `is joined to this hub already, as "cluster1"`)
	require.Contains(t, twice.err, "kubectl ocm unjoin cluster1 --klusterlet klusterlet --context spoke")
	well(t, "spoke", "--context", "spoke")

	greet := func(name, cluster, context string) {
		body := strings.ReplaceAll(configMap, "greeting", name)
		require.Zero(t, runWith(t, body, "work", "apply", "web", "-f", "-", "-c", cluster, "--context", context, "--wait", "--timeout", "5m").code)
	}
	greet("greeting-of-hub", "cluster1", "hub")
	greet("greeting-of-second", "edge", "second")
	before := running(t, spoke)
	require.Len(t, before, 2)
	steady(t, spoke)

	// The second one leaves, with its works.
	require.Zero(t, run(t, "unjoin", "edge", "--context", "spoke", "--hub-context", "second", "--yes", "--timeout", "5m").code)
	require.Equal(t, map[string]string{"greeting-of-hub": before["greeting-of-hub"]}, running(t, spoke))
	require.Equal(t, "klusterlet", ownerOfShared(t, spoke))
	well(t, "spoke", "--context", "spoke", "--hub-context", "hub")

	// The first one leaves: what both need is the second one's then.
	require.Zero(t, run(t, further...).code)
	greet("greeting-of-second", "edge", "second")
	before = running(t, spoke)
	require.Zero(t, run(t, "unjoin", "cluster1", "--context", "spoke", "--hub-context", "hub", "--yes", "--timeout", "5m").code)
	require.Equal(t, map[string]string{"greeting-of-second": before["greeting-of-second"]}, running(t, spoke))
	require.Equal(t, "second", ownerOfShared(t, spoke))
	greet("greeting-of-second", "edge", "second")

	// Both leave at once, and leave nothing.
	require.Zero(t, run(t, first...).code)
	require.Zero(t, run(t, "work", "delete", "web", "-c", "edge", "--context", "second", "--yes").code)
	eventually(t, func() bool { return len(uids(t, spoke, workRecord)) == 0 }, patience, 100*time.Millisecond)
	typeLine(t, "kubectl delete klusterlet klusterlet second --timeout 5m --context spoke")
	eventually(t, func() bool { return maps.Equal(empty, inventory(t, spoke)) }, patience, 200*time.Millisecond)
}

// ownerOfShared returns the Klusterlet that all objects are labelled with that agents share.
func ownerOfShared(t *testing.T, spoke *harness.Cluster) string {
	t.Helper()
	const label = "open-cluster-management.io/created-by-klusterlet"
	client := spoke.Dynamic(t)
	addOns, err := client.Resource(namespaces).Get(t.Context(), "open-cluster-management-agent-addon", metav1.GetOptions{})
	require.NoError(t, err)
	for _, name := range []string{sharedDefinition, "clusterclaims.cluster.open-cluster-management.io", "klusterlets.operator.open-cluster-management.io"} {
		d, err := client.Resource(definitions).Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, addOns.GetLabels()[label], d.GetLabels()[label], name)
	}
	return addOns.GetLabels()[label]
}

// steady checks that two agents do not write what they share in turns: what both have to write
// when they start is written soon, and then nothing is for two seconds.
func steady(t *testing.T, spoke *harness.Cluster) {
	t.Helper()
	version := func() string {
		d, err := spoke.Dynamic(t).Resource(definitions).Get(t.Context(), sharedDefinition, metav1.GetOptions{})
		require.NoError(t, err)
		return d.GetResourceVersion()
	}
	at, since := version(), time.Now()
	require.True(t, harness.Until(patience, func() bool {
		if now := version(); now != at {
			at, since = now, time.Now()
		}
		return time.Since(since) > 2*time.Second
	}), "they write it in turns")
}
