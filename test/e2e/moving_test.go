// SPDX-License-Identifier: Apache-2.0

//go:build e2e && linux

package e2e_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/test/harness/nodes"
	"github.com/kubectl-ocm/kubectl-ocm/test/install"
	"github.com/kubectl-ocm/kubectl-ocm/tools/image/oci"
)

// nextRelease is the release that the fleet is upgraded to.
const nextRelease = "v0.2.0"

// moving is a fleet whose installation changes under an application.
type moving struct {
	*life
	// pods are the pods of the application, with their restarts.
	pods string
	// backup is the file with the hub's objects.
	backup string
}

// TestMovingAFleet changes how a fleet is installed while an application runs on it: the layout of
// its hub, the number of its hubs, the hub itself after a disaster, and the release. The cluster
// stays available where its hub is there, and no pod of the application is replaced or restarted.
func TestMovingAFleet(t *testing.T) {
	m := &moving{life: &life{fleet: startFleet(t, "c1", "second"), app: manifests(t, "shop")}, backup: filepath.Join(t.TempDir(), "hub.jsonl")}
	for _, one := range []*nodes.Cluster{m.hub, m.on("second")} {
		require.NoError(t, one.Load(t.Context(), image(t, "ocm-hub")))
	}
	story(t,
		chapter{"the charts install a hub and an agent", m.charts},
		chapter{"the layout of the hub changes and changes back", m.available(m.layouts)},
		chapter{"the bundles install a hub that manages itself", m.bundles},
		chapter{"this second hub uses the cluster too and leaves", m.available(m.secondHub)},
		chapter{"the hub is lost and restored from its back-up", m.disaster},
		chapter{"hub and agent are upgraded", m.available(m.upgrade)},
		chapter{"nothing is left behind", m.leave},
	)
}

// chart installs a chart of the repository in a new namespace, as Helm does.
func (m *moving) chart(t *testing.T, c *nodes.Cluster, name string, values map[string]any) {
	t.Helper()
	rendered, err := install.Render(filepath.Join(root, "config/helm", name), hubNamespace, values)
	require.NoError(t, err)
	kubectl(t, c, "create", "namespace", hubNamespace)
	kubectl(t, c, "apply", "--server-side", "-f", file(t, "definitions.yaml", rendered.Definitions...))
	kubectl(t, c, "wait", "--for=condition=Established", "crd", "--all", "--timeout=1m")
	kubectl(t, c, "apply", "--server-side", "-f", file(t, name+".yaml", rendered.Objects...))
}

func (m *moving) charts(t *testing.T) {
	m.chart(t, m.hub, "cluster-manager", map[string]any{})
	kubectl(t, m.hub, "wait", "--for=condition=Progressing=false", "clustermanager/cluster-manager", "--timeout=180s")
	m.chart(t, m.on("c1"), "klusterlet", map[string]any{
		"klusterlet":             map[string]any{"clusterName": "c1"},
		"bootstrapHubKubeConfig": m.ocm(t, "hub", "token", "--cluster", "c1", "--print", "kubeconfig", "--context", "hub"),
	})
	kubectl(t, m.hub, "wait", "--for=create", "csr", "-l", "open-cluster-management.io/cluster-name=c1", "--timeout=180s")
	m.ocm(t, "accept", "c1", "--wait", "--context", "hub")
	m.awaitAvailable(t, "c1")
	m.ocm(t, "work", "apply", "web", "-f", m.app, "-c", "c1", "--context", "hub", "--wait")
	kubectl(t, m.on("c1"), "-n", "shop", "rollout", "status", "deployment/webdemo", "--timeout=1m")
	m.pods = m.running(t)
}

// running returns the pods of the application and how often their containers were restarted.
func (m *moving) running(t *testing.T) string {
	t.Helper()
	return podsIn(t, m.on("c1"), "shop")
}

// podsIn returns the pods of a namespace and how often their containers were restarted.
func podsIn(t *testing.T, c *nodes.Cluster, namespace string) string {
	t.Helper()
	const row = `jsonpath={range .items[*]}{.metadata.uid} {.status.containerStatuses[*].restartCount}{"\n"}{end}`
	return kubectl(t, c, "-n", namespace, "get", "pods", "-o", row)
}

// available runs a chapter in which the cluster must stay available and its pods as they are.
func (m *moving) available(run func(*testing.T)) func(*testing.T) {
	return func(t *testing.T) {
		const since = `jsonpath={.status.conditions[?(@.type=="ManagedClusterConditionAvailable")]['status','lastTransitionTime']}`
		before := kubectl(t, m.hub, "get", "managedcluster", "c1", "-o", since)
		require.True(t, strings.HasPrefix(before, "True "), before)
		run(t)
		require.Equal(t, before, kubectl(t, m.hub, "get", "managedcluster", "c1", "-o", since), "available all the time")
		require.Equal(t, m.pods, m.running(t))
		m.delivers(t)
	}
}

// delivers sends a work to the cluster and removes it.
func (m *moving) delivers(t *testing.T) {
	t.Helper()
	kubectl(t, m.hub, "apply", "-f", work(t, "c1", "greeting"))
	m.becomes(t, "c1", "manifestwork", "greeting", "Applied")
	kubectl(t, m.hub, "-n", "c1", "delete", "manifestwork", "greeting", "--timeout=1m")
	require.Empty(t, uidIn(t, m.on("c1"), "default", "configmap", "greeting"))
}

func (m *moving) layouts(t *testing.T) {
	for _, layout := range []string{"split", "compact"} {
		begin := time.Now()
		m.ocm(t, "hub", "init", "--context", "hub", "--layout", layout)
		t.Logf("measured: hub init --layout %s %.2f s", layout, time.Since(begin).Seconds())
		m.delivers(t)
	}
}

// bundle installs a bundle of the repository, as the Operator Lifecycle Manager does.
func (m *moving) bundle(t *testing.T, c *nodes.Cluster, name, namespace, custom string) {
	t.Helper()
	objects, err := install.Bundle(filepath.Join(root, "config/olm", name), namespace)
	require.NoError(t, err)
	kubectl(t, c, "apply", "--server-side", "-f", file(t, name+".yaml", objects...))
	kubectl(t, c, "wait", "--for=condition=Established", "crd", "--all", "--timeout=1m")
	kubectl(t, c, "apply", "--server-side", "-f", filepath.Join(root, custom))
}

// bundles makes the cluster second a hub, and cluster1 of this hub.
func (m *moving) bundles(t *testing.T) {
	second := m.on("second")
	for _, name := range []string{hubNamespace, agentNamespace, placedNamespace} {
		kubectl(t, second, "create", "namespace", name)
	}
	m.bundle(t, second, "cluster-manager", hubNamespace, "config/hub/manifests/clustermanager.yaml")
	kubectl(t, second, "wait", "--for=condition=Progressing=false", "clustermanager/cluster-manager", "--timeout=180s")
	kubectl(t, second, "apply", "-f", file(t, "bootstrap.yaml", &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"namespace": agentNamespace, "name": "bootstrap-hub-kubeconfig"},
		"stringData": map[string]any{"kubeconfig": m.ocm(t, "hub", "token", "--cluster", "cluster1", "--print", "kubeconfig", "--context", "second")},
	}}))
	m.bundle(t, second, "klusterlet", agentNamespace, "config/agent/manifests/klusterlet.yaml")
	kubectl(t, second, "wait", "--for=create", "csr", "-l", "open-cluster-management.io/cluster-name=cluster1", "--timeout=180s")
	m.ocm(t, "accept", "cluster1", "--wait", "--context", "second")
}

func (m *moving) secondHub(t *testing.T) {
	second := m.on("second")
	m.ocm(t, "join", "edge", "--klusterlet", "other", "--context", "c1", "--hub-context", "second", "--accept")
	kubectl(t, second, "apply", "-f", work(t, "edge", "welcome"))
	of := condition(t, second, "manifestwork", "welcome", "-n", "edge")
	eventually(t, func() error {
		if status := of("Available"); status != "True" {
			return fmt.Errorf("available is %q", status)
		}
		return nil
	})
	kubectl(t, m.on("c1"), "-n", "default", "get", "configmap", "welcome")
	require.Len(t, processes(t, m.on("c1"), "ocm-agent"), 2)
	kubectl(t, second, "-n", "edge", "delete", "manifestwork", "welcome", "--timeout=1m")
	m.ocm(t, "unjoin", "edge", "--klusterlet", "other", "--context", "c1", "--hub-context", "second", "--yes", "--force")
	m.bundlesLeave(t)
}

// bundlesLeave removes the custom resources and then, as the Operator Lifecycle Manager does, what
// came with the bundles.
func (m *moving) bundlesLeave(t *testing.T) {
	t.Helper()
	second := m.on("second")
	kubectl(t, second, "delete", "klusterlet", "klusterlet", "--timeout=1m")
	m.ocm(t, "cluster", "remove", "cluster1", "--force", "--context", "second", "--yes")
	kubectl(t, second, "delete", "clustermanager", "cluster-manager", "--timeout=1m")
	for name, namespace := range map[string]string{"cluster-manager": hubNamespace, "klusterlet": agentNamespace} {
		objects, err := install.Bundle(filepath.Join(root, "config/olm", name), namespace)
		require.NoError(t, err)
		kubectl(t, second, "delete", "--ignore-not-found", "--timeout=1m", "-f", file(t, name+".yaml", objects...))
	}
	kubectl(t, second, "delete", "namespace", hubNamespace, agentNamespace, placedNamespace, "open-cluster-management-hub", "--ignore-not-found", "--timeout=1m")
	m.requireAsBefore(t, second)
}

func (m *moving) disaster(t *testing.T) {
	m.ocm(t, "hub", "backup", m.backup, "--context", "hub")
	var err error
	m.life.hub, err = m.hub.Replace(t.Context())
	require.NoError(t, err)
	require.NoError(t, nodes.WriteKubeconfig(m.kubeconfig, append([]*nodes.Cluster{m.hub}, m.managed...)...))
	begin := time.Now()
	m.ocm(t, "hub", "init", "--context", "hub")
	m.ocm(t, "hub", "restore", m.backup, "--context", "hub", "--wait=false")
	m.ocm(t, "join", "c1", "--context", "c1", "--hub-context", "hub", "--accept")
	m.ocm(t, "hub", "restore", m.backup, "--context", "hub")
	t.Logf("measured: an empty cluster to a restored hub with its cluster %.2f s", time.Since(begin).Seconds())
	m.becomes(t, "c1", "manifestwork", "web", "Available")
	require.Equal(t, m.pods, m.running(t))
}

func (m *moving) upgrade(t *testing.T) {
	for name, c := range map[string]*nodes.Cluster{"ocm-hub": m.hub, "ocm-agent": m.on("c1")} {
		require.NoError(t, c.Load(t.Context(), imageOf(t, name, nextRelease)))
	}
	m.ocm(t, "hub", "upgrade", "--plan", "--version", nextRelease, "--context", "hub")
	require.Contains(t, m.ocm(t, "hub", "upgrade", "--version", nextRelease, "--context", "hub"), "to "+nextRelease)
	m.delivers(t)
	require.Contains(t, m.ocm(t, "join", "--upgrade", "--version", nextRelease, "--context", "c1", "--hub-context", "hub"), "to "+nextRelease)
	for _, pod := range []struct {
		c         *nodes.Cluster
		namespace string
		image     string
	}{{m.hub, hubNamespace, "ocm-hub"}, {m.on("c1"), agentNamespace, "ocm-agent"}} {
		const images = `jsonpath={.items[*].spec.containers[*].image}`
		eventually(t, func() error { // the pod before may still be ending
			if now := kubectl(t, pod.c, "-n", pod.namespace, "get", "pods", "-o", images); now != oci.DefaultRepository+"/"+pod.image+":"+nextRelease {
				return fmt.Errorf("the images are %s", now)
			}
			return nil
		})
	}
}

func (m *moving) leave(t *testing.T) {
	m.ocm(t, "work", "delete", "web", "-c", "c1", "--context", "hub", "--wait", "--yes")
	m.ocm(t, "unjoin", "c1", "--context", "c1", "--hub-context", "hub", "--yes", "--force")
	m.ocm(t, "hub", "clean", "--context", "hub", "--yes")
	m.requireAsBefore(t, m.hub)
	kubectl(t, m.on("c1"), "delete", "namespace", hubNamespace, "--timeout=1m") // that of the release
	m.requireAsBefore(t, m.on("c1"))
}
