// SPDX-License-Identifier: Apache-2.0

//go:build e2e && linux

package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/test/harness/nodes"
)

// TestRegistration runs everything that docs/guides/registration.md describes between
// clusters and their hub, with the commands of the guide.
func TestRegistration(t *testing.T) {
	r := &registration{fleet: startFleet(t, "c1", "c2"), app: manifests(t, "shop")}
	story(t,
		chapter{"make deploy-hub", r.deployHub},
		chapter{"a cluster asks with the line that hub token printed", r.ask},
		chapter{"the agent is killed while it waits", r.killPending},
		chapter{"a denied request is seen on both sides and asked again", r.deny},
		chapter{"accepted after all", r.accept},
		chapter{"acceptance is taken back, and given again", r.denyAndAcceptAgain},
		chapter{"sets group clusters", r.sets},
		chapter{"an application runs", r.deploy},
		chapter{"a check sends a canary and writes a bundle", r.check},
		chapter{"the hub is away for several leases", r.outage},
		chapter{"a certificate of seconds is renewed unattended", r.rotate},
		chapter{"a certificate that expired offline is replaced by one command", r.expire},
		chapter{"two clusters under one name", r.oneName},
		chapter{"a cluster removed while its agent was offline stays removed", r.removedOffline},
		chapter{"the hub's address and authority change", r.move},
		chapter{"a cluster that is gone for good is forgotten", r.goneForGood},
		chapter{"a hub is rebuilt from nothing", r.rebuild},
		chapter{"make clean-spoke leaves nothing behind", r.cleanSpoke},
		chapter{"a hub that manages itself", r.loopback},
		chapter{"make clean-hub leaves nothing behind", r.cleanHub},
		chapter{"the guide tells nothing else", r.guide},
	)
}

// registration is the state that the chapters of TestRegistration share.
type registration struct {
	*fleet
	app string
	// pod is the application's pod on c1, which must stay untouched.
	pod string
}

// make runs make in the hub's network, as Open Cluster Management's guides do.
func (f *fleet) make(t *testing.T, arguments ...string) string {
	t.Helper()
	dir, err := filepath.Abs(root)
	require.NoError(t, err)
	command := f.command(t, "make", append([]string{"--no-print-directory", "-C", dir}, arguments...)...)
	command.Env = append(os.Environ(), "KUBECONFIG="+f.kubeconfig)
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, &out
	err = f.hub.Run(command)
	t.Logf("$ make %s\n%s", strings.Join(arguments, " "), head(out.String()))
	for line := range strings.Lines(out.String()) {
		if typed, ok := strings.CutPrefix(strings.TrimSpace(line), "bin/kubectl-ocm "); ok {
			f.typed["kubectl ocm "+strings.TrimSuffix(typed, " --yes")] = true
		}
	}
	require.NoError(t, err)
	return out.String()
}

func (r *registration) deployHub(t *testing.T) {
	r.ocm(t, "check", "--pre", "hub", "--context", "hub")
	out := r.make(t, "deploy-hub", "HUB_KUBECONFIG_CONTEXT=hub")
	require.Contains(t, out, "join a cluster:")
	r.ocm(t, "check", "--pre", "join", "--context", "c1", "--hub-context", "hub")
}

// ask runs the command that "hub token" prints, except for the context.
func (r *registration) ask(t *testing.T) {
	line := strings.TrimSpace(r.ocm(t, "hub", "token", "--cluster", "c1", "--context", "hub"))
	echo, join, piped := strings.Cut(strings.Replace(line, "<its context>", "c1", 1), " | ")
	require.True(t, piped, line)
	token, echoed := strings.CutPrefix(echo, "echo ")
	require.True(t, echoed, line)
	words := strings.Fields(join)
	require.Equal(t, []string{"kubectl", "ocm", "join", "c1", "--context", "c1"}, words[:6])
	require.Contains(t, words, "--hub-ca-hash")
	require.NotContains(t, words, token, "lists of processes show arguments")
	said := r.runWith(t, token+"\n", words[2:]...)
	require.Zero(t, said.code, said.stderr)
	require.Contains(t, said.stdout, "c1 asked "+r.hub.Server+" to be accepted")
	require.Equal(t, []string{"Pending"}, r.requests(t, "c1"))
	require.NotEqual(t, "True", condition(t, r.hub, "managedcluster", "c1")("HubAcceptedManagedCluster"))
}

// requests lists the outcomes of the certificate requests of a cluster, oldest first.
func (r *registration) requests(t *testing.T, cluster string) []string {
	t.Helper()
	rows := kubectl(t, r.hub, "get", "csr", "-l", "open-cluster-management.io/cluster-name="+cluster, "--sort-by=.metadata.creationTimestamp", "--no-headers")
	var out []string
	for row := range strings.Lines(rows) {
		fields := strings.Fields(row)
		out = append(out, fields[len(fields)-1])
	}
	return out
}

// trouble returns what the agent reports about its hub on the managed cluster; empty
// without trouble.
func trouble(t *testing.T, c *nodes.Cluster) string {
	t.Helper()
	const query = `jsonpath={range .status.conditions[?(@.type=="HubConnectionDegraded")]}{.status}: {.message}{end}`
	said := kubectl(t, c, "get", "klusterlet", "klusterlet", "-o", query)
	if strings.HasPrefix(said, "False") {
		return ""
	}
	return said
}

// awaitTrouble waits until the agent reports want on the managed cluster.
func awaitTrouble(t *testing.T, c *nodes.Cluster, want string) time.Duration {
	t.Helper()
	return eventually(t, func() error {
		said := trouble(t, c)
		if (want == "" && said == "") || (want != "" && strings.Contains(said, want)) {
			return nil
		}
		return fmt.Errorf("%s says %q", c.Name, said)
	})
}

func (r *registration) killPending(t *testing.T) {
	r.killAgentOf(t, r.on("c1"))
	awaitTrouble(t, r.on("c1"), "waits for approval on the hub")
	require.Equal(t, []string{"Pending"}, r.requests(t, "c1"), "it goes on with the same request")
}

// killAgentOf kills the agent's process and waits for the next.
func (r *registration) killAgentOf(t *testing.T, c *nodes.Cluster) {
	t.Helper()
	killed := kill(t, c, "ocm-agent")
	eventually(t, func() error {
		for _, one := range processes(t, c, "ocm-agent") {
			if one.PID != killed {
				return nil
			}
		}
		return errAbsent
	})
}

func (r *registration) deny(t *testing.T) {
	require.Contains(t, r.ocm(t, "accept", "c1", "--deny", "--context", "hub"), "managedcluster/c1 denied")
	require.Regexp(t, `(?m)^c1 .* denied`, r.ocm(t, "accept", "--show", "--context", "hub"))
	require.Equal(t, []string{"Denied"}, r.requests(t, "c1"))
	awaitTrouble(t, r.on("c1"), "denied by a person")
	awaitTrouble(t, r.on("c1"), "attempt 2 follows at")
	took := eventually(t, func() error { return same([]string{"Denied", "Pending"}, r.requests(t, "c1")) })
	t.Logf("measured: asked again %.0f s after the denial was told", took.Seconds())
}

// same returns an error while have differs from want.
func same(want, have []string) error {
	if strings.Join(want, " ") != strings.Join(have, " ") {
		return fmt.Errorf("there is %q, not %q", have, want)
	}
	return nil
}

func (r *registration) accept(t *testing.T) {
	r.ocm(t, "accept", "c1", "--wait", "--context", "hub")
	require.Equal(t, []string{"Denied", "Approved,Issued"}, r.requests(t, "c1"))
	awaitTrouble(t, r.on("c1"), "")
	r.lease(t, "c1", 2)
}

// lease changes how often a cluster reports, in seconds. After five times that without a
// report, it is Unknown.
func (r *registration) lease(t *testing.T, cluster string, seconds int) {
	t.Helper()
	kubectl(t, r.hub, "patch", "managedcluster", cluster, "--type=merge", "-p", fmt.Sprintf(`{"spec":{"leaseDurationSeconds":%d}}`, seconds))
}

// awaitAvailability waits until the hub reports this availability of a cluster.
func (r *registration) awaitAvailability(t *testing.T, cluster, want string) time.Duration {
	t.Helper()
	of := condition(t, r.hub, "managedcluster", cluster)
	return eventually(t, func() error {
		if status := of("ManagedClusterConditionAvailable"); status != want {
			return fmt.Errorf("available of %s is %q", cluster, status)
		}
		return nil
	})
}

func (r *registration) denyAndAcceptAgain(t *testing.T) {
	r.ocm(t, "accept", "c1", "--deny", "--context", "hub")
	awaitTrouble(t, r.on("c1"), "the hub does not accept the cluster any more")
	r.awaitAvailability(t, "c1", "Unknown")
	require.Equal(t, "False", condition(t, r.hub, "managedcluster", "c1")("HubAcceptedManagedCluster"))
	require.Regexp(t, `(?m)^c1 +Denied `, r.ocm(t, "cluster", "list", "--context", "hub"))
	require.Contains(t, r.ocm(t, "check", "--context", "hub"), "OCM0306 it is denied")
	seen := r.run(t, "check", "spoke", "--context", "c1", "--hub-context", "hub")
	require.Equal(t, 3, seen.code, seen.stderr)
	require.Contains(t, seen.stdout, "OCM0403 the agent is unhealthy\n      cause: HubConnectionDegraded=True")
	r.ocm(t, "accept", "c1", "--wait", "--context", "hub")
	r.awaitAvailability(t, "c1", "True")
	require.Equal(t, []string{"Denied", "Approved,Issued"}, r.requests(t, "c1"), "the certificate it has is good")
}

// sets tests the commands for cluster sets against the hub's admission and controllers.
func (r *registration) sets(t *testing.T) {
	r.ocm(t, "clusterset", "create", "prod", "--context", "hub")
	r.ocm(t, "clusterset", "add", "prod", "-c", "c1", "--context", "hub")
	r.ocm(t, "clusterset", "create", "linux", "--selector", "os=linux", "--context", "hub")
	kubectl(t, r.hub, "wait", "--for=condition=ClusterSetEmpty=false", "managedclusterset/prod", "--timeout=180s")
	kubectl(t, r.hub, "wait", "--for=condition=ClusterSetEmpty=true", "managedclusterset/linux", "--timeout=180s")
	r.ocm(t, "clusterset", "bind", "prod", "-n", "default", "--context", "hub")
	kubectl(t, r.hub, "wait", "--for=condition=Bound", "managedclustersetbinding/prod", "-n", "default", "--timeout=180s")
	require.Regexp(t, `(?m)^prod +clusterset=prod +1 +1 +default `, r.ocm(t, "clusterset", "list", "--context", "hub"))
	require.Contains(t, r.refused(t, 6, "clusterset", "delete", "prod", "--context", "hub", "--yes"), "is not empty")
	r.ocm(t, "clusterset", "drop", "prod", "-c", "c1", "--context", "hub", "--yes")
	r.ocm(t, "clusterset", "unbind", "prod", "-n", "default", "--context", "hub", "--yes")
	r.ocm(t, "clusterset", "delete", "prod", "--context", "hub", "--yes")
	r.ocm(t, "clusterset", "delete", "linux", "--context", "hub", "--yes")
	require.Equal(
		t, "default",
		kubectl(t, r.hub, "get", "managedcluster", "c1", "-o", `jsonpath={.metadata.labels.cluster\.open-cluster-management\.io/clusterset}`),
	)
}

func (r *registration) deploy(t *testing.T) {
	r.ocm(t, "work", "apply", "web", "-f", r.app, "-c", "c1", "--context", "hub", "--wait")
	kubectl(t, r.on("c1"), "-n", "shop", "rollout", "status", "deployment/webdemo", "--timeout=180s")
	r.pod = r.podOf(t)
	require.Contains(t, r.pod, " Running 0")
}

func (r *registration) check(t *testing.T) {
	r.ocm(t, "check", "--wait", "2m", "--context", "hub")
	require.Regexp(t, `c1: applied in .* gone in `, r.ocm(t, "check", "--e2e", "--context", "hub"))
	bundle := filepath.Join(t.TempDir(), "support.tgz")
	r.ocm(t, "check", "--bundle", bundle, "--context", "hub")
	require.FileExists(t, bundle)
}

// podOf returns the application's pod, and how often it was started.
func (r *registration) podOf(t *testing.T) string {
	t.Helper()
	const query = `jsonpath={range .items[*]}{.metadata.uid} {.status.phase} {.status.containerStatuses[*].restartCount}{end}`
	return kubectl(t, r.on("c1"), "-n", "shop", "get", "pods", "-o", query)
}

// requireUntouched checks that the application's pod is the same and was not restarted.
func (r *registration) requireUntouched(t *testing.T) {
	t.Helper()
	require.Equal(t, r.pod, r.podOf(t), "the application's pod")
	_, err := page(t, r.on("c1"), "shop")
	require.NoError(t, err)
}

func (r *registration) outage(t *testing.T) {
	c := r.on("c1")
	require.NoError(t, r.hub.KillProcess(nodes.APIServer))
	awaitTrouble(t, c, "The hub has not answered since")
	// Wait longer than the grace period of the lease, so that the hub finds it expired.
	down := time.Now()
	eventually(t, func() error {
		if time.Since(down) < 12*time.Second {
			return errAbsent
		}
		return nil
	})
	kubectl(t, c, "-n", "shop", "delete", "configmap", "webdemo", "--wait=false")
	eventually(t, func() error { // what was declared is kept without a hub
		if uidOf(t, c, "configmap", "webdemo") == "" {
			return errAbsent
		}
		return nil
	})
	require.NoError(t, r.hub.Restart(t.Context(), nodes.APIServer))
	awaitTrouble(t, c, "")
	kubectl(t, r.hub, "-n", hubNamespace, "rollout", "status", hubPods, "--timeout=180s")
	r.awaitAvailability(t, "c1", "True")
	r.requireUntouched(t)
}

// short is the lifetime of certificates in the chapters about their expiry.
const short = 40 * time.Second

func (r *registration) rotate(t *testing.T) {
	c := r.on("c2")
	require.NoError(t, r.hub.SignFor(t.Context(), short))
	r.joinInOldWords(t, "c2")
	r.lease(t, "c2", 2)
	first, agent := certificate(t, c), processes(t, c, "ocm-agent")
	took := eventually(t, func() error {
		if certificate(t, c) == first {
			return errAbsent
		}
		return nil
	})
	t.Logf("measured: another certificate after %.0f s, of a life of %s", took.Seconds(), short)
	require.Equal(t, agent[0].PID, processes(t, c, "ocm-agent")[0].PID, "without a restart")
	eventually(t, func() error { // and the hub takes it
		if renewed(t, r.hub, "c2") == "" || trouble(t, c) != "" {
			return errAbsent
		}
		return nil
	})
	require.GreaterOrEqual(t, len(r.requests(t, "c2")), 2)
	require.NotContains(t, r.requests(t, "c2"), "Denied")
}

// joinInOldWords joins and accepts a cluster with the commands of Open Cluster
// Management's guides.
func (r *registration) joinInOldWords(t *testing.T, cluster string) {
	t.Helper()
	var token map[string]any
	require.NoError(t, json.Unmarshal([]byte(r.ocm(t, "get", "token", "--use-bootstrap-token", "--context", "hub", "-o", "json")), &token))
	r.ocm(t, "join", "--hub-token", token["hub-token"].(string), "--hub-apiserver", token["hub-apiserver"].(string), "--wait",
		"--cluster-name", cluster, "--singleton", "--force-internal-endpoint-lookup", "--context", cluster)
	r.ocm(t, "accept", "--clusters", cluster, "--wait", "--context", "hub")
}

// certificate returns the agent's certificate.
func certificate(t *testing.T, c *nodes.Cluster) string {
	t.Helper()
	return kubectl(t, c, "-n", agentNamespace, "get", "secret", "hub-kubeconfig-secret", "-o", `jsonpath={.data.tls\.crt}`)
}

func (r *registration) expire(t *testing.T) {
	c := r.on("c2")
	require.NoError(t, c.Cut(t.Context()))
	awaitTrouble(t, c, "the certificate expired at")
	require.NoError(t, r.hub.SignFor(t.Context(), 0))
	r.awaitAvailability(t, "c2", "Unknown")
	require.NoError(t, c.Heal(t.Context()))
	r.ocm(t, "accept", "c2", "--wait", "--context", "hub")
	r.awaitAvailability(t, "c2", "True")
	awaitTrouble(t, c, "")
}

func (r *registration) oneName(t *testing.T) {
	// A cluster whose agent starts over gets its name back from an administrator.
	r.forgetIdentity(t, r.on("c1"))
	r.awaitPending(t, "c1")
	r.ocm(t, "accept", "c1", "--replace", "--context", "hub")
	awaitTrouble(t, r.on("c1"), "")
	r.awaitAvailability(t, "c1", "True")
	r.requireUntouched(t)
	c := r.on("c2")
	said := r.refused(t, 6, "join", "c1", "--context", "c2", "--hub-context", "hub", "--accept")
	require.Contains(t, said, "c2")
	// Editing the spec changes nothing while the agent has its certificate.
	kubectl(t, c, "patch", "klusterlet", "klusterlet", "--type=merge", "-p", `{"spec":{"clusterName":"c1"}}`)
	eventually(t, func() error {
		if condition(t, c, "klusterlet", "klusterlet")("SpecSupported") != "False" {
			return errAbsent
		}
		return nil
	})
	require.Empty(t, trouble(t, c))
	// A cloned machine, or a copied manifest, bypasses the plugin.
	r.forgetIdentity(t, c)
	of := condition(t, r.hub, "managedcluster", "c1")
	eventually(t, func() error {
		if of("DuplicateClusterName") != "True" {
			return errAbsent
		}
		return nil
	})
	awaitTrouble(t, c, "waits for approval on the hub")
	require.Equal(t, "True", of("ManagedClusterConditionAvailable"))
	require.Empty(t, trouble(t, r.on("c1")))
	r.requireUntouched(t)
	kubectl(t, c, "patch", "klusterlet", "klusterlet", "--type=merge", "-p", `{"spec":{"clusterName":"c2"}}`)
	r.awaitPending(t, "c2")
	r.ocm(t, "accept", "c2", "--wait", "--context", "hub")
	awaitTrouble(t, c, "")
	r.awaitAvailability(t, "c2", "True")
}

// forgetIdentity takes an agent's certificate and its name away.
func (r *registration) forgetIdentity(t *testing.T, c *nodes.Cluster) {
	t.Helper()
	// As long as it has the key, it writes a certificate that is lost again by itself.
	eventually(t, func() error {
		if uidIn(t, c, agentNamespace, "secret", "hub-kubeconfig-pending") != "" {
			return errAbsent
		}
		return nil
	})
	kubectl(t, c, "-n", agentNamespace, "delete", "secret", "hub-kubeconfig-secret")
	r.killAgentOf(t, c)
}

// awaitPending waits until the newest request of a cluster waits for a person.
func (r *registration) awaitPending(t *testing.T, cluster string) {
	t.Helper()
	eventually(t, func() error {
		if all := r.requests(t, cluster); len(all) == 0 || all[len(all)-1] != "Pending" {
			return errAbsent
		}
		return nil
	})
}

func (r *registration) removedOffline(t *testing.T) {
	c := r.on("c2")
	require.NoError(t, c.Cut(t.Context()))
	kubectl(t, r.hub, "delete", "managedcluster", "c2", "--timeout=180s")
	require.NoError(t, c.Heal(t.Context()))
	awaitTrouble(t, c, "the hub has no ManagedCluster of this name any more")
	r.killAgentOf(t, c)
	awaitTrouble(t, c, "or it was removed from the hub (join it again to request access)")
	require.Empty(t, uidIn(t, r.hub, "", "managedcluster", "c2"), "nobody called it back")
	require.Contains(t, r.ocm(t, "join", "c2", "--context", "c2", "--hub-context", "hub", "--accept"), "c2 joined hub hub")
	r.lease(t, "c2", 2)
}

func (r *registration) move(t *testing.T) {
	before := r.requests(t, "c1")
	require.NoError(t, r.hub.Abandon(t.Context()))
	awaitTrouble(t, r.on("c1"), "The hub has not answered since")
	r.pointAt(t, r.hub.Elsewhere)
	for _, c := range r.managed {
		said := r.run(t, "join", c.Name, "--context", c.Name, "--hub-context", "hub")
		require.Zero(t, said.code)
		require.Contains(t, said.stderr, "it uses "+r.hub.Elsewhere.Server+" with the certificate that it has")
		awaitTrouble(t, c, "")
		r.awaitAvailability(t, c.Name, "True")
	}
	require.Equal(t, before, r.requests(t, "c1"), "nobody had to approve anything")
	eventually(t, func() error { // its record has the address of the hub
		records := strings.Fields(kubectl(t, r.on("c1"), "get", "appliedmanifestworks", "-o", "jsonpath={.items[*].metadata.name}"))
		if len(records) != 1 {
			return fmt.Errorf("one work is recorded as %q", records)
		}
		return nil
	})
	r.requireUntouched(t)
	kubectl(t, r.hub, "apply", "-f", work(t, "c1", "after-the-move"))
	kubectl(t, r.hub, "-n", "c1", "wait", "--for=condition=Available", "manifestwork/after-the-move", "--timeout=180s")
	kubectl(t, r.hub, "-n", "c1", "delete", "manifestwork", "after-the-move", "--timeout=180s")
}

// pointAt changes the server of the context "hub".
func (r *registration) pointAt(t *testing.T, way nodes.Way) {
	t.Helper()
	kubectl(t, r.hub, "--kubeconfig="+r.kubeconfig, "config", "set-cluster", "hub", "--server="+way.Server, "--certificate-authority="+way.CAFile, "--embed-certs")
}

func (r *registration) goneForGood(t *testing.T) {
	c := r.on("c2")
	r.ocm(t, "work", "apply", "left", "-f", manifests(t, "left"), "-c", "c2", "--context", "hub", "--wait")
	require.NoError(t, c.Cut(t.Context()))
	r.awaitAvailability(t, "c2", "Unknown")
	r.ocm(t, "unjoin", "c2", "--hub-only", "--hub-context", "hub", "--force", "--yes")
	for _, kind := range []string{"managedcluster", "namespace"} {
		require.Empty(t, uidIn(t, r.hub, "", kind, "c2"), kind)
	}
	require.NotContains(t, r.ocm(t, "cluster", "list", "--context", "hub"), "c2")
	// The cluster is found again; what ran there stays until it is deleted.
	require.NoError(t, c.Heal(t.Context()))
	r.ocm(t, "unjoin", "c2", "--context", "c2", "--keep-works", "--yes")
	require.Contains(t, r.ocm(t, "unjoin", "--cluster-name", "c2", "--context", "c2", "--yes"), "unchanged")
	require.NotEmpty(t, uidIn(t, c, "", "namespace", "left"))
}

func (r *registration) rebuild(t *testing.T) {
	var err error
	r.hub, err = r.hub.Replace(t.Context())
	require.NoError(t, err)
	require.NoError(t, nodes.WriteKubeconfig(r.kubeconfig, append([]*nodes.Cluster{r.hub}, r.managed...)...))
	r.pointAt(t, r.hub.Elsewhere)
	made := r.ocm(t, "init", "--wait", "--use-bootstrap-token", "--context", "hub")
	require.Regexp(t, `(?m)^echo [a-z0-9]{6}\.[a-z0-9]{16} \| kubectl ocm join <name> .* --token-file - --hub-ca-hash sha256:`, made)
	said := r.run(t, "join", "c1", "--context", "c1", "--hub-context", "hub", "--accept")
	require.Zero(t, said.code, said.stderr)
	require.Contains(t, said.stderr, "does not know its certificate; it asks for a new one")
	r.awaitAvailability(t, "c1", "True")
	r.requireUntouched(t)
	r.ocm(t, "work", "apply", "web", "-f", r.app, "-c", "c1", "--context", "hub", "--wait")
	r.requireUntouched(t)
}

func (r *registration) cleanSpoke(t *testing.T) {
	r.make(t, "clean-spoke", "HUB_KUBECONFIG_CONTEXT=hub", "KLUSTERLET_KUBECONFIG_CONTEXT=c1", "MANAGED_CLUSTER=c1")
	r.requireAsBefore(t, r.on("c1"))
}

func (r *registration) loopback(t *testing.T) {
	intact := func() string {
		return kubectl(t, r.hub, "-n", hubNamespace, "get", "deployment", "cluster-manager", "-o", "jsonpath={.metadata.uid} {.status.readyReplicas}")
	}
	before, had := intact(), r.held(t, r.hub)
	r.ocm(t, "join", "local", "--context", "hub", "--hub-context", "hub", "--accept")
	of := condition(t, r.hub, "managedcluster", "local")
	for _, name := range []string{"HubAcceptedManagedCluster", "ManagedClusterJoined", "ManagedClusterConditionAvailable"} {
		require.Equal(t, "True", of(name), name)
	}
	r.lease(t, "local", 1)
	last := renewed(t, r.hub, "local")
	for range 2 {
		eventually(t, func() error {
			if now := renewed(t, r.hub, "local"); now != last {
				last = now
				return nil
			}
			return errAbsent
		})
	}
	for _, field := range []string{"capacity.cpu", "capacity.memory", "allocatable.cpu", "allocatable.memory"} {
		eventually(t, func() error { // the agent reads its nodes after it is available
			if kubectl(t, r.hub, "get", "managedcluster", "local", "-o", "jsonpath={.status."+field+"}") == "" {
				return fmt.Errorf("%s is %w", field, errAbsent)
			}
			return nil
		})
	}
	r.claim(t, r.hub, "local", "id.k8s.io", "cluster-of-the-hub")
	r.ocm(t, "unjoin", "local", "--context", "hub", "--hub-context", "hub", "--force", "--yes")
	eventually(t, func() error { return same([]string{before}, []string{intact()}) }) // the hub is as it was
	r.holds(t, r.hub, had)
	require.Empty(t, uidIn(t, r.hub, "", "managedcluster", "local"))
}

// held lists all that a cluster holds now except join tokens, which expire on their own;
// see objects.
func (f *fleet) held(t *testing.T, c *nodes.Cluster) []string {
	t.Helper()
	now, err := lasting(t, c)
	require.NoError(t, err)
	return now
}

// holds waits until a cluster holds what held has listed, whose kinds may come and go meanwhile.
func (f *fleet) holds(t *testing.T, c *nodes.Cluster, want []string) {
	t.Helper()
	eventually(t, func() error {
		now, err := lasting(t, c)
		if err != nil {
			return err
		}
		return same(want, now)
	})
}

func lasting(t *testing.T, c *nodes.Cluster) ([]string, error) {
	t.Helper()
	now, err := objects(t, c)
	return slices.DeleteFunc(now, func(row string) bool { return strings.Contains(row, "/join-token-") }), err
}

// claim writes a ClusterClaim on a managed cluster and waits until the hub shows
// it.
func (f *fleet) claim(t *testing.T, c *nodes.Cluster, cluster, name, value string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "claim.yaml")
	body := fmt.Sprintf("apiVersion: cluster.open-cluster-management.io/v1alpha1\nkind: ClusterClaim\nmetadata:\n  name: %s\nspec:\n  value: %s\n", name, value)
	require.NoError(t, os.WriteFile(path, []byte(body), 0o600))
	kubectl(t, c, "apply", "-f", path)
	query := fmt.Sprintf(`jsonpath={.status.clusterClaims[?(@.name==%q)].value}`, name)
	took := eventually(t, func() error {
		if got := kubectl(t, f.hub, "get", "managedcluster", cluster, "-o", query); got != value {
			return fmt.Errorf("the claim is %q", got)
		}
		return nil
	})
	t.Logf("measured: a claim is on the hub %s after kubectl apply returned (kubectl's own start included)", took.Round(time.Millisecond))
	kubectl(t, c, "delete", "-f", path) // its kind stays while there is one
}

func (r *registration) cleanHub(t *testing.T) {
	r.make(t, "clean-hub", "HUB_KUBECONFIG_CONTEXT=hub")
	r.requireAsBefore(t, r.hub, namespaceOf("c1")...)
}

// guide checks that every command line of the guide was run above.
func (r *registration) guide(t *testing.T) { r.requireTyped(t, "docs/guides/registration.md", 11) }
