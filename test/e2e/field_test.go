// SPDX-License-Identifier: Apache-2.0

//go:build e2e && linux

package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness/nodes"
	"github.com/kubectl-ocm/kubectl-ocm/tools/image/oci"
)

// The images of Open Cluster Management, and the release that the fleet comes from.
const (
	fieldImages  = "quay.io/open-cluster-management"
	fieldRelease = "v1.3.1"
)

// fieldLease is how often the agents of the fleet renew their leases, in seconds.
const fieldLease = 15

// field is a fleet that Open Cluster Management installed.
type field struct {
	*moving
	// addOn are the pods of the add-on, and identity the certificates of the agent and of the add-on.
	addOn, identity string
}

// TestMovingFromOCM takes a fleet over from Open Cluster Management, and gives it back, while an
// application and an add-on run. The images have the names of that distribution and hold our programs,
// with a command as it starts its own: what is taken over really works until it ends. Its operator does
// nothing on the hub, and cannot be pulled on the cluster.
func TestMovingFromOCM(t *testing.T) {
	m := &field{moving: &moving{life: &life{fleet: startFleet(t, "c1"), app: manifests(t, "shop")}}}
	story(t,
		chapter{"a fleet works", m.install},
		chapter{"it is one of Open Cluster Management", m.disguise},
		chapter{"the hub is taken over", m.steady(m.adoptHub)},
		chapter{"the cluster is taken over", m.steady(m.adoptCluster)},
		chapter{"the hub is given back", m.steady(m.hubBack)},
		chapter{"the cluster is given back, and its pods run on", m.clusterBack},
	)
}

// fieldImage builds the archive of an image of the other distribution with a program of ours.
func fieldImage(t *testing.T, name, program string) string {
	t.Helper()
	return once(t, name+" of "+program, func(ctx context.Context, dir string) (string, error) {
		config := oci.Config{
			Repository: fieldImages, Version: fieldRelease, Out: filepath.Join(dir, filepath.Base(program)), Dir: root,
			Platforms: []string{"linux/" + runtime.GOARCH},
		}
		archive, err := oci.Build(ctx, config, oci.Image{Name: name, Package: program})
		return archive.Path, err
	})
}

func (m *field) install(t *testing.T) {
	m.ocm(t, "hub", "init", "--layout", "split", "--context", "hub")
	m.ocm(t, "join", "c1", "--layout", "split", "--context", "c1", "--hub-context", "hub", "--accept")
	kubectl(t, m.hub, "patch", "managedcluster", "c1", "--type=merge", "-p", fmt.Sprintf(`{"spec":{"leaseDurationSeconds":%d}}`, fieldLease))
	m.ocm(t, "work", "apply", "web", "-f", m.app, "-c", "c1", "--context", "hub", "--wait")
	kubectl(t, m.on("c1"), "-n", "shop", "rollout", "status", "deployment/webdemo", "--timeout=1m")

	const registers = "spec:\n  addonName: page\n  registration:\n  - type: KubeClient\n    kubeClient: {}\n"
	require.Contains(t, pageAddOn, "spec:\n  addonName: page\n")
	body := strings.Replace(fmt.Sprintf(pageAddOn, oci.DefaultRepository+"/webdemo:"+version(t)), "spec:\n  addonName: page\n", registers, 1)
	kubectl(t, m.hub, "apply", "-f", text(t, "page.yaml", body))
	m.ocm(t, "addon", "enable", "page", "-c", "c1", "--context", "hub")
	eventually(t, func() error {
		_, err := m.on("c1").Kubectl(t.Context(), "-n", placedNamespace, "get", "secret", "page-hub-kubeconfig")
		return err
	})
	kubectl(t, m.on("c1"), "-n", placedNamespace, "wait", "--for=create", "deployment/page", "--timeout=1m")
	kubectl(t, m.on("c1"), "-n", placedNamespace, "rollout", "status", "deployment/page", "--timeout=1m")
}

// disguise replaces what runs the fleet by Deployments with the images of the other distribution.
func (m *field) disguise(t *testing.T) {
	c1 := m.on("c1")
	for _, name := range []string{"registration", "work"} {
		require.NoError(t, c1.Load(t.Context(), fieldImage(t, name, "./controllers/ocm-agent")))
	}
	for name, program := range map[string]string{"registration": "./controllers/ocm-hub", "registration-operator": "./test/harness/nodes/pause"} {
		require.NoError(t, m.hub.Load(t.Context(), fieldImage(t, name, program)))
	}

	m.end(t, m.hub, hubNamespace, "cluster-manager")
	m.dress(t, m.hub, hub.ComponentNamespace)
	// Roles of our components that the other hub does not have are not put back on the way back.
	kubectl(t, m.hub, "create", "clusterrolebinding", "of-the-other-hub", "--clusterrole=cluster-admin",
		"--group=system:serviceaccounts:"+hub.ComponentNamespace)
	m.operator(t, m.hub, "cluster-manager")
	kubectl(t, m.hub, "-n", hubNamespace, "rollout", "status", "deployment/cluster-manager", "--timeout=1m")
	kubectl(t, m.hub, "-n", hub.ComponentNamespace, "wait", "--for=condition=Available", "deployment", "--all", "--timeout=1m")
	kubectl(t, m.hub, "label", "clustermanager", "cluster-manager", "open-cluster-management.io/created-by-clustermanager-")

	m.end(t, c1, hubNamespace, "klusterlet")
	m.dress(t, c1, agentNamespace)
	m.operator(t, c1, "klusterlet") // whose image is not there, and cannot be pulled
	kubectl(t, c1, "-n", agentNamespace, "wait", "--for=condition=Available", "deployment", "--all", "--timeout=1m")
	m.delivers(t)
	m.pods, m.addOn, m.identity = m.running(t), podsIn(t, c1, placedNamespace), m.identities(t)
}

// end removes Deployments, whose names may be a flag, and waits for the end of their pods.
func (m *field) end(t *testing.T, c *nodes.Cluster, namespace, names string) {
	t.Helper()
	kubectl(t, c, "-n", namespace, "delete", "deployment", names, "--cascade=foreground", "--timeout=1m")
}

// dress makes the Deployments of a namespace those of the other distribution.
func (m *field) dress(t *testing.T, c *nodes.Cluster, namespace string) {
	t.Helper()
	var list struct{ Items []*unstructured.Unstructured }
	require.NoError(t, json.Unmarshal([]byte(kubectl(t, c, "-n", namespace, "get", "deployments", "-o", "json")), &list))
	for _, u := range list.Items {
		labels, name := u.GetLabels(), u.GetName()
		u.Object["metadata"] = map[string]any{"namespace": namespace, "name": name}
		u.SetLabels(labels)
		delete(u.Object, "status")
		program := "registration"
		if name == "klusterlet-work-agent" {
			program = "work"
		}
		containers, _, err := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
		require.NoError(t, err)
		container := containers[0].(map[string]any)
		container["image"], container["command"] = fieldImages+"/"+program+":"+fieldRelease, []any{"/" + program}
		require.NoError(t, unstructured.SetNestedSlice(u.Object, containers, "spec", "template", "spec", "containers"))
	}
	m.end(t, c, namespace, "--all")
	kubectl(t, c, "create", "-f", file(t, "field.yaml", list.Items...))
}

// operator creates the operator of the other distribution, which does nothing.
func (m *field) operator(t *testing.T, c *nodes.Cluster, name string) {
	t.Helper()
	kubectl(t, c, "-n", hubNamespace, "create", "deployment", name, "--image="+fieldImages+"/registration-operator:"+fieldRelease)
}

// identities returns the certificates of the agent and of its add-on.
func (m *field) identities(t *testing.T) string {
	t.Helper()
	const row = `jsonpath={.metadata.uid} {.data.tls\.crt}`
	return kubectl(t, m.on("c1"), "-n", agentNamespace, "get", "secret", "hub-kubeconfig-secret", "-o", row) +
		kubectl(t, m.on("c1"), "-n", placedNamespace, "get", "secret", "page-hub-kubeconfig", "-o", row)
}

// same checks that the pods that works made run on, and that no certificate was issued.
func (m *field) same(t *testing.T) {
	t.Helper()
	require.Equal(t, m.pods, m.running(t))
	require.Equal(t, m.addOn, podsIn(t, m.on("c1"), placedNamespace))
	require.Equal(t, m.identity, m.identities(t))
}

// steady runs a chapter in which the cluster stays available, misses no lease, and keeps its pods and
// its certificates.
func (m *field) steady(run func(*testing.T)) func(*testing.T) {
	return func(t *testing.T) {
		apart := m.renewals(t)
		begin := time.Now()
		m.available(run)(t)
		t.Logf("measured: %.2f s, renewals %s apart at most", time.Since(begin).Seconds(), apart(t))
		m.same(t)
	}
}

// renewals looks at the lease of the cluster every now and then; the returned function ends that, and
// returns the longest time between two renewals, without that in which the machine stood still.
func (m *field) renewals(t *testing.T) func(*testing.T) time.Duration {
	t.Helper()
	read := func(ctx context.Context) time.Time {
		said, err := m.hub.Kubectl(ctx, "-n", "c1", "get", "lease", "managed-cluster-lease", "-o", "jsonpath={.spec.renewTime}")
		if err != nil {
			return time.Time{}
		}
		at, _ := time.Parse(time.RFC3339Nano, said)
		return at
	}
	ctx, cancel := context.WithCancel(t.Context())
	last, longest, stalls := read(ctx), time.Duration(0), harness.WatchStalls(ctx)
	require.False(t, last.IsZero())
	since := func(at time.Time) time.Duration { return at.Sub(last) - stalls.Lost(last, at) }
	var running sync.WaitGroup
	running.Go(func() {
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for ctx.Err() == nil {
			if at := read(ctx); at.After(last) {
				last, longest = at, max(longest, since(at))
			}
			select {
			case <-ctx.Done():
			case <-ticker.C:
			}
		}
	})
	t.Cleanup(cancel)
	return func(t *testing.T) time.Duration {
		t.Helper()
		cancel()
		running.Wait()
		longest = max(longest, since(time.Now()))
		require.Less(t, longest, 2*fieldLease*time.Second, "a renewal was left out")
		return longest
	}
}

func (m *field) adoptHub(t *testing.T) {
	require.Contains(t, m.ocm(t, "hub", "init", "--adopt", "--plan", "--context", "hub"), "replaced")
	m.ocm(t, "hub", "init", "--adopt", "--context", "hub")
	require.Empty(t, kubectl(t, m.hub, "-n", hub.ComponentNamespace, "get", "deployments", "-o", "name"))
	require.Contains(t, m.ocm(t, "hub", "init", "--adopt", "--context", "hub", "-o", "json"), `"unchanged"`)
}

func (m *field) adoptCluster(t *testing.T) {
	require.Contains(t, m.refused(t, 6, "join", "c1", "--context", "c1", "--hub-context", "hub"), "--adopt")
	m.ocm(t, "join", "c1", "--context", "c1", "--hub-context", "hub", "--adopt")
	require.Equal(t, "deployment.apps/klusterlet-agent", kubectl(t, m.on("c1"), "-n", agentNamespace, "get", "deployments", "-o", "name"))
	require.Equal(t, "0", kubectl(t, m.on("c1"), "-n", hubNamespace, "get", "deployment", "klusterlet", "-o", "jsonpath={.spec.replicas}"))
}

func (m *field) hubBack(t *testing.T) {
	m.ocm(t, "hub", "upgrade", "--back-out", "--context", "hub")
	images := kubectl(t, m.hub, "get", "deployments", "-A", "-o", "jsonpath={.items[*].spec.template.spec.containers[*].image}")
	require.NotContains(t, images, oci.DefaultRepository)
	require.Len(t, strings.Fields(images), len(hub.ComponentNames)+1)
	greeting := work(t, "c1", "greeting")
	eventually(t, func() error { // the node learns a little later where the webhooks are
		_, err := m.hub.Kubectl(t.Context(), "apply", "--dry-run=server", "-f", greeting)
		return err
	})
}

// clusterBack gives the cluster back to an operator that cannot start: until it can, the cluster has no
// agent, and what works applied runs on.
func (m *field) clusterBack(t *testing.T) {
	m.ocm(t, "join", "--back-out", "--context", "c1", "--wait=false")
	require.Empty(t, kubectl(t, m.on("c1"), "-n", agentNamespace, "get", "deployments", "-o", "name"))
	require.Equal(t, "1", kubectl(t, m.on("c1"), "-n", hubNamespace, "get", "deployment", "klusterlet", "-o", "jsonpath={.spec.replicas}"))
	m.same(t)
}
