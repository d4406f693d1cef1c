// SPDX-License-Identifier: Apache-2.0

//go:build e2e && linux

package e2e_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/test/harness/memory"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness/nodes"
)

// Namespaces and Deployments of the project.
const (
	hubNamespace   = "open-cluster-management"
	agentNamespace = "open-cluster-management-agent"
	hubPods        = "deployment/cluster-manager"
	agentPods      = "deployment/klusterlet-agent"
)

// TestLifeOfAFleet installs, uses and removes a fleet with the plugin.
func TestLifeOfAFleet(t *testing.T) {
	f := startFleet(t, "c1", "c2")
	life := &life{fleet: f, app: manifests(t, "shop")}
	story(t,
		chapter{"a cluster becomes a hub", life.initialise},
		chapter{"a cluster joins and is accepted in one step", life.joinInOneStep},
		chapter{"a cluster asks to join and is accepted later", life.joinAndAccept},
		chapter{"the fleet can be seen", life.list},
		chapter{"an application runs on both clusters", life.deploy},
		chapter{"what somebody deletes comes back", life.repairDeleted},
		chapter{"what somebody changes is put right", life.repairChanged},
		chapter{"the hub is restarted and everything goes on", life.restartHub},
		chapter{"the hub's kube-apiserver dies and everything goes on", life.restartAPIServer},
		chapter{"the agent is killed and everything goes on", life.killAgent},
		chapter{"a cluster that is cut off is Unknown and heals by itself", life.cut},
		chapter{"ten works are light", life.memory},
		chapter{"a cluster with works is not let go", life.refuseUnjoin},
		chapter{"a deleted work takes the application along", life.deleteWorks},
		chapter{"a hub with clusters is not cleaned", life.refuseClean},
		chapter{"unjoin leaves nothing behind", life.unjoin},
		chapter{"clean leaves nothing behind", life.clean},
		chapter{"a hub of separate Deployments serves a cluster", life.split},
		chapter{"its cluster runs the agents of others", life.host},
		chapter{"they leave nothing behind", life.guestsLeave},
		chapter{"the hub of separate Deployments leaves nothing behind either", life.splitLeaves},
	)
}

// life is the state that the chapters of TestLifeOfAFleet share.
type life struct {
	*fleet
	app string
}

func (l *life) initialise(t *testing.T) {
	begin := time.Now()
	l.ocm(t, "hub", "init", "--context", "hub")
	t.Logf("measured: hub init to ready %.2f s", time.Since(begin).Seconds())
	require.Contains(t, l.ocm(t, "hub", "init", "--context", "hub", "-o", "json"), `"unchanged"`, "a second run changes nothing")
	for _, name := range []string{"default", "global"} {
		kubectl(t, l.hub, "get", "managedclusterset", name)
	}
}

func (l *life) joinInOneStep(t *testing.T) {
	begin := time.Now()
	l.ocm(t, "join", "c1", "--context", "c1", "--hub-context", "hub", "--accept")
	t.Logf("measured: join c1 to Available %.2f s", time.Since(begin).Seconds())
	of := condition(t, l.hub, "managedcluster", "c1")
	for _, name := range []string{"HubAcceptedManagedCluster", "ManagedClusterJoined", "ManagedClusterConditionAvailable"} {
		require.Equal(t, "True", of(name), name)
	}
}

func (l *life) joinAndAccept(t *testing.T) {
	l.ocm(t, "join", "c2", "--context", "c2", "--hub-context", "hub")
	eventually(t, func() error {
		if !strings.Contains(l.ocm(t, "accept", "--show", "--context", "hub"), "c2") {
			return errAbsent
		}
		return nil
	})
	require.NotEqual(t, "True", condition(t, l.hub, "managedcluster", "c2")("HubAcceptedManagedCluster"))
	begin := time.Now()
	l.ocm(t, "accept", "c2", "--context", "hub")
	l.awaitAvailable(t, "c2")
	t.Logf("measured: accept c2 to Available %.2f s", time.Since(begin).Seconds())
}

// awaitAvailable waits until the hub reports a cluster as available.
func (l *life) awaitAvailable(t *testing.T, name string) {
	t.Helper()
	of := condition(t, l.hub, "managedcluster", name)
	eventually(t, func() error {
		if status := of("ManagedClusterConditionAvailable"); status != "True" {
			return fmt.Errorf("available is %q", status)
		}
		return nil
	})
}

func (l *life) list(t *testing.T) {
	table := l.ocm(t, "cluster", "list", "--context", "hub")
	for _, name := range []string{"c1", "c2"} {
		require.Regexp(t, `(?m)^`+name+`\s+Available\s`, table)
	}
	var answer map[string]any
	require.NoError(t, json.Unmarshal([]byte(l.ocm(t, "cluster", "list", "--context", "hub", "-o", "json")), &answer))
	require.Len(t, answer["items"], 2)
}

func (l *life) deploy(t *testing.T) {
	l.ocm(t, "work", "apply", "web", "-f", l.app, "-c", "c1,c2", "--context", "hub", "--wait")
	for _, c := range l.managed {
		eventually(t, func() error {
			shown, err := page(t, c, "shop")
			if err == nil && !strings.Contains(shown, "<dd>"+c.Name+"</dd>") {
				err = fmt.Errorf("the page does not name its cluster: %s", shown)
			}
			return err
		})
		require.Contains(t, kubectl(t, c, "-n", "shop", "logs", "deployment/webdemo"), "webdemo "+version(t))
	}
	require.Regexp(t, `(?m)^c1\s+web\s+True\s+True\s`, l.ocm(t, "work", "list", "-c", "c1", "--context", "hub"))
}

// repairs is how often a repair is measured; the median counts. The agent backs off from
// an object that is changed more often, as if another writer fought over it.
const repairs = 5

func (l *life) repairDeleted(t *testing.T) {
	var took []time.Duration
	for range repairs {
		c := l.managed[0]
		uid := func() string { return uidOf(t, c, "configmap", "webdemo") }
		old := uid()
		kubectl(t, c, "-n", "shop", "delete", "configmap", "webdemo", "--wait=false")
		took = append(took, eventually(t, func() error {
			if now := uid(); now == "" || now == old {
				return errAbsent
			}
			return nil
		}))
	}
	t.Logf("measured: a deleted object is back after %s (median of %d, kubectl's own start included)", median(took), repairs)
}

func (l *life) repairChanged(t *testing.T) {
	c := l.managed[0]
	var took []time.Duration
	for i := range repairs {
		patch := fmt.Sprintf(`{"metadata":{"labels":{"app":"mine-%d","added":"stays"}}}`, i)
		kubectl(t, c, "-n", "shop", "patch", "service", "webdemo", "--type=merge", "-p", patch)
		took = append(took, eventually(t, func() error {
			if got := label(t, c, "app"); got != "webdemo" {
				return fmt.Errorf("the label is %q", got)
			}
			return nil
		}))
	}
	t.Logf("measured: a changed object is right after %s (median of %d, kubectl's own start included)", median(took), repairs)
	require.Equal(t, "stays", label(t, c, "added"), "fields that the work does not name belong to others")
}

// label reads a label of the application's Service.
func label(t *testing.T, c *nodes.Cluster, key string) string {
	t.Helper()
	return kubectl(t, c, "-n", "shop", "get", "service", "webdemo", "-o", "jsonpath={.metadata.labels."+key+"}")
}

func (l *life) restartHub(t *testing.T) {
	kubectl(t, l.hub, "-n", hubNamespace, "rollout", "restart", hubPods)
	kubectl(t, l.hub, "-n", hubNamespace, "rollout", "status", hubPods, "--timeout=180s")
	for _, c := range l.managed {
		l.awaitAvailable(t, c.Name)
	}
	l.stillDelivers(t, "after-hub-restart")
}

func (l *life) restartAPIServer(t *testing.T) {
	require.NoError(t, l.hub.KillProcess(nodes.APIServer))
	c := l.managed[1]
	kubectl(t, c, "-n", "shop", "delete", "configmap", "webdemo", "--wait=false")
	eventually(t, func() error { // what was declared is kept without a hub
		if uidOf(t, c, "configmap", "webdemo") == "" {
			return errAbsent
		}
		return nil
	})
	require.NoError(t, l.hub.Restart(t.Context(), nodes.APIServer))
	kubectl(t, l.hub, "-n", hubNamespace, "rollout", "status", hubPods, "--timeout=180s")
	l.stillDelivers(t, "after-apiserver-death")
}

func (l *life) killAgent(t *testing.T) {
	c := l.managed[0]
	killed := kill(t, c, "ocm-agent")
	// An object that is deleted while no agent runs must come back too.
	kubectl(t, c, "-n", "shop", "delete", "service", "webdemo", "--wait=false")
	eventually(t, func() error {
		for _, one := range processes(t, c, "ocm-agent") {
			if one.PID != killed {
				return nil
			}
		}
		return errAbsent
	})
	eventually(t, func() error { _, err := page(t, c, "shop"); return err })
	l.awaitAvailable(t, "c1")
	l.stillDelivers(t, "after-agent-death")
}

// stillDelivers sends one more work to each cluster and deletes it.
func (l *life) stillDelivers(t *testing.T, name string) {
	t.Helper()
	for _, c := range l.managed {
		file := work(t, c.Name, name)
		away := eventually(t, func() error { // admission may be away for a moment
			_, err := l.hub.Kubectl(t.Context(), "apply", "-f", file)
			return err
		})
		t.Logf("measured: a work for %s was admitted after %.2f s", c.Name, away.Seconds())
		eventually(t, func() error {
			_, err := c.Kubectl(t.Context(), "-n", "default", "get", "configmap", name)
			return err
		})
		kubectl(t, l.hub, "-n", c.Name, "delete", "manifestwork", name, "--timeout=180s")
		require.Empty(t, uidIn(t, c, "default", "configmap", name), "a deleted work takes its objects along")
	}
}

func (l *life) cut(t *testing.T) {
	// The lease is renewed every two seconds, and counts as late after five times that.
	// Its last renewal may be older already.
	last := renewed(t, l.hub, "c2")
	kubectl(t, l.hub, "patch", "managedcluster", "c2", "--type=merge", "-p", `{"spec":{"leaseDurationSeconds":2}}`)
	eventually(t, func() error {
		if renewed(t, l.hub, "c2") == last {
			return errAbsent
		}
		return nil
	})
	l.awaitAvailable(t, "c2")
	c := l.on("c2")
	require.NoError(t, c.Cut(t.Context()))
	of := condition(t, l.hub, "managedcluster", "c2")
	took := eventually(t, func() error {
		if status := of("ManagedClusterConditionAvailable"); status != "Unknown" {
			return fmt.Errorf("available is %q", status)
		}
		return nil
	})
	t.Logf("measured: cut off to Unknown %.2f s", took.Seconds())
	awaitTaints(t, l.hub, "c2", "cluster.open-cluster-management.io/unreachable")
	_, err := page(t, c, "shop")
	require.NoError(t, err, "what runs there goes on without a hub")
	kubectl(t, l.hub, "apply", "-f", work(t, "c2", "declared-meanwhile"))
	require.NoError(t, c.Heal(t.Context()))
	l.awaitAvailable(t, "c2")
	eventually(t, func() error {
		if uidIn(t, c, "default", "configmap", "declared-meanwhile") == "" {
			return errAbsent
		}
		return nil
	})
	kubectl(t, l.hub, "-n", "c2", "delete", "manifestwork", "declared-meanwhile", "--timeout=180s")
	awaitTaints(t, l.hub, "c2", "")
	kubectl(t, l.hub, "patch", "managedcluster", "c2", "--type=merge", "-p", `{"spec":{"leaseDurationSeconds":60}}`)
}

// awaitTaints waits until a cluster has these taints and no other.
func awaitTaints(t *testing.T, hub *nodes.Cluster, cluster, want string) {
	t.Helper()
	eventually(t, func() error {
		if got := kubectl(t, hub, "get", "managedcluster", cluster, "-o", "jsonpath={.spec.taints[*].key}"); got != want {
			return fmt.Errorf("the taints are %q", got)
		}
		return nil
	})
}

// renewed returns when an agent last renewed its lease.
func renewed(t *testing.T, hub *nodes.Cluster, cluster string) string {
	t.Helper()
	return kubectl(t, hub, "-n", cluster, "get", "lease", "managed-cluster-lease", "-o", "jsonpath={.spec.renewTime}")
}

func (l *life) memory(t *testing.T) {
	c := l.managed[0]
	var took []time.Duration
	var names []string
	for i := range 9 { // and the one that is there
		name := fmt.Sprintf("light-%d", i)
		names = append(names, name)
		file := work(t, "c1", name)
		kubectl(t, l.hub, "apply", "-f", file)
		took = append(took, eventually(t, func() error {
			if uidIn(t, c, "default", "configmap", name) == "" {
				return errAbsent
			}
			return nil
		}))
	}
	t.Logf("measured: a work is applied %s after kubectl apply returned (median of %d, kubectl's own start included)", median(took), len(took))
	t.Logf("measured: ocm-agent holds %s with 10 works", held(t, c, "ocm-agent"))
	t.Logf("measured: ocm-hub holds %s with 2 clusters", held(t, l.hub, "ocm-hub"))
	kubectl(t, l.hub, append([]string{"-n", "c1", "delete", "manifestwork"}, names...)...)
}

func (l *life) refuseUnjoin(t *testing.T) {
	said := l.refused(t, 6, "unjoin", "c1", "--context", "c1", "--yes")
	require.Contains(t, said, "--hub-context", "it names what would remove the works")
	l.awaitAvailable(t, "c1")
	_, err := page(t, l.managed[0], "shop")
	require.NoError(t, err)
}

func (l *life) deleteWorks(t *testing.T) {
	l.ocm(t, "work", "delete", "web", "-c", "c1,c2", "--context", "hub", "--yes")
	for _, c := range l.managed {
		eventually(t, func() error {
			if uidIn(t, c, "", "namespace", "shop") != "" {
				return fmt.Errorf("namespace shop is still on %s", c.Name)
			}
			return nil
		})
	}
}

func (l *life) refuseClean(t *testing.T) {
	said := l.refused(t, 6, "hub", "clean", "--context", "hub", "--yes")
	for _, name := range []string{"c1", "c2"} {
		require.Contains(t, said, name, "it names the clusters that are attached")
	}
	kubectl(t, l.hub, "-n", hubNamespace, "rollout", "status", hubPods, "--timeout=5s")
}

// unjoin removes c1 in the recommended way, and c2 with force, which also removes its
// namespace on the hub.
func (l *life) unjoin(t *testing.T) {
	for _, c := range l.managed {
		arguments := []string{"unjoin", c.Name, "--context", c.Name, "--hub-context", "hub", "--yes"}
		if c.Name == "c2" {
			arguments = append(arguments, "--force")
		}
		begin := time.Now()
		l.ocm(t, arguments...)
		t.Logf("measured: %s %.2f s", strings.Join(arguments[:2], " "), time.Since(begin).Seconds())
		l.requireAsBefore(t, c)
		require.Empty(t, uidIn(t, l.hub, "", "managedcluster", c.Name))
		require.Contains(t, l.ocm(t, arguments...), "unchanged", "a second run changes nothing")
	}
}

func (l *life) clean(t *testing.T) {
	begin := time.Now()
	l.ocm(t, "hub", "clean", "--context", "hub", "--yes")
	t.Logf("measured: hub clean %.2f s", time.Since(begin).Seconds())
	_, err := l.hub.Kubectl(t.Context(), "get", "clustermanagers", "--cache-dir="+t.TempDir())
	require.ErrorContains(t, err, `the server doesn't have a resource type "clustermanagers"`)
	// A cluster's namespace is not removed without force: others may have put
	// something there.
	l.requireAsBefore(t, l.hub, namespaceOf("c1")...)
}

// uidOf returns the UID of an object in namespace shop, or "" when it is absent.
func uidOf(t *testing.T, c *nodes.Cluster, kind, name string) string {
	return uidIn(t, c, "shop", kind, name)
}

// uidIn returns the UID of an object, or "" when it is absent.
func uidIn(t *testing.T, c *nodes.Cluster, namespace, kind, name string) string {
	t.Helper()
	return kubectl(t, c, "-n", namespace, "get", kind, name, "--ignore-not-found", "-o", "jsonpath={.metadata.uid}")
}

// processes lists the processes of a program in a cluster's pods.
func processes(t *testing.T, c *nodes.Cluster, program string) []nodes.Process {
	t.Helper()
	all, err := c.Processes()
	require.NoError(t, err)
	return slices.DeleteFunc(all, func(one nodes.Process) bool { return one.Command != program })
}

// held returns the memory of the only process of a program, and of its container.
func held(t *testing.T, c *nodes.Cluster, program string) string {
	t.Helper()
	found := processes(t, c, program)
	require.Len(t, found, 1)
	set, err := memory.WorkingSet(found[0].PID)
	require.NoError(t, err)
	return found[0].Memory.String() + ", working set of the container " + memory.MiB(set)
}

// median returns the median.
func median(took []time.Duration) time.Duration {
	slices.Sort(took)
	return took[len(took)/2].Round(time.Millisecond)
}
