// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/check"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
)

// finding is a finding that check has printed, with its fix split into words.
type finding struct {
	Code              string
	Severity          check.Severity
	Title, Cause, Fix string
}

// looked runs check and returns its findings that report a problem, by code.
func looked(t *testing.T, words ...string) map[string]finding {
	t.Helper()
	got := run(t, append(append([]string{"check"}, words...), "-o", "json")...)
	var report struct {
		Areas []struct{ Findings []finding }
	}
	require.NoError(t, json.Unmarshal([]byte(got.out), &report), got.err)
	out := map[string]finding{}
	for _, area := range report.Areas {
		for _, f := range area.Findings {
			if f.Severity != check.SeverityOK {
				out[f.Code] = f
			}
		}
	}
	return out
}

// editor is what a person does in kubectl edit: it removes the configuration that is not there,
// corrects a key, a label of namespaces, and the name of a role.
const editor = "sed -i -e 's/^  configs:$/  configs: []/' -e '/^  - group: example.com/,/resource: things/d' -e 's/no key: x/key: x/' " +
	"-e 's/team: nowhere/kubernetes.io\\/metadata.name: default/' -e 's/name: nosuch-role/name: view/'"

// typeLine runs a printed line as it is, up to the remark at its end, and returns its
// output.
func typeLine(t *testing.T, line string) string {
	t.Helper()
	line, _, _ = strings.Cut(line, "      ")
	require.NotContains(t, line, "<")
	words := strings.Fields(strings.ReplaceAll(line, "'", ""))
	require.Equal(t, "kubectl", words[0], line)
	if words[1] == "ocm" {
		if slices.Contains(words, "--force") {
			words = append(words, "--yes") // the answer to the prompt
		}
		got := run(t, words[2:]...)
		if words[2] != "check" { // its exit code reports findings
			require.Zero(t, got.code, line)
		}
		return got.out + got.err
	}
	binaries, err := harness.Binaries(t.Context())
	require.NoError(t, err)
	command := exec.CommandContext(t.Context(), binaries.Kubectl, words[1:]...)
	command.Env = append(environment(t), "KUBE_EDITOR="+editor)
	said, err := command.CombinedOutput()
	require.NoError(t, err, "%s\n%s", line, said)
	return string(said)
}

// found waits until check reports a code.
func found(t *testing.T, code string, words ...string) finding {
	t.Helper()
	var f finding
	eventually(t, func() bool {
		f = looked(t, words...)[code]
		return f.Code == code
	}, patience, 500*time.Millisecond, "check %s does not find %s", strings.Join(words, " "), code)
	return f
}

// told waits for a code whose fix only shows more, runs that, and checks its output.
func told(t *testing.T, code, want string, words ...string) {
	t.Helper()
	f := found(t, code, words...)
	require.Contains(t, typeLine(t, f.Fix), want, f.Fix)
}

// mended runs the fix of a code and waits until check no longer reports it.
func mended(t *testing.T, code string, words ...string) finding {
	t.Helper()
	f := found(t, code, words...)
	typeLine(t, f.Fix)
	eventually(t, func() bool {
		_, still := looked(t, words...)[code]
		return !still
	}, patience, 500*time.Millisecond, "%s does not mend %s", f.Fix, code)
	return f
}

// patched changes an object as a user would with kubectl.
func patched(t *testing.T, c *harness.Cluster, resource schema.GroupVersionResource, namespace, name, body string) {
	t.Helper()
	_, err := c.Dynamic(t).Resource(resource).Namespace(namespace).Patch(t.Context(), name, types.MergePatchType, []byte(body), metav1.PatchOptions{})
	require.NoError(t, err)
}

// stoppedBy scales a Deployment to 0 and waits until it has no pod.
func stoppedBy(t *testing.T, c *harness.Cluster, namespace, name string) {
	t.Helper()
	patched(t, c, deployments, namespace, name, `{"spec":{"replicas":0}}`)
	eventually(t, func() bool {
		list, err := c.Dynamic(t).Resource(pods).Namespace(namespace).List(t.Context(), metav1.ListOptions{})
		return err == nil && len(list.Items) == 0
	}, patience, 100*time.Millisecond)
}

var (
	hooks      = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"}
	managers   = schema.GroupVersionResource{Group: "operator.open-cluster-management.io", Version: "v1", Resource: "clustermanagers"}
	placements = schema.GroupVersionResource{Group: "cluster.open-cluster-management.io", Version: "v1beta1", Resource: "placements"}
)

// faults plants faults in a hub and its cluster1, and runs each fix as printed.
func faults(t *testing.T, hub, spoke *harness.Cluster, gate *harness.Gate) {
	t.Run("the hub is scaled to 0, and admission and a kind are gone", func(t *testing.T) { hubFaults(t, hub) })
	late := plantLate(t, hub)
	t.Run("canaries", func(t *testing.T) { canaries(t, hub, spoke) })
	t.Run("the cluster on its hub", func(t *testing.T) { clusterFaults(t, hub) })
	t.Run("works", func(t *testing.T) { workFaults(t, hub, spoke) })
	t.Run("a cluster without an agent", func(t *testing.T) { agentlessFaults(t, hub, spoke) })
	t.Run("add-ons", func(t *testing.T) { addOnFaults(t, hub) })
	t.Run("a rollout", func(t *testing.T) { rolloutFault(t, hub) })
	t.Run("placements", func(t *testing.T) { placementFaults(t, hub) })
	t.Run("what shows after a minute", late.mended)
	t.Run("the agent", func(t *testing.T) { agentFaults(t, hub, spoke, gate) })
}

func hubFaults(t *testing.T, hub *harness.Cluster) {
	const hook = "placementvalidators.admission.cluster.open-cluster-management.io"
	const kind = "addonplacementscores.cluster.open-cluster-management.io"
	stoppedBy(t, hub, "open-cluster-management", "cluster-manager")
	require.NotContains(t, run(t, "check", "hub", "--context", "hub").out, "clustermanager/cluster-manager applied", "it is from before")
	require.NoError(t, hub.Dynamic(t).Resource(hooks).Delete(t.Context(), hook, metav1.DeleteOptions{}))
	require.NoError(t, hub.Dynamic(t).Resource(definitions).Delete(t.Context(), kind, metav1.DeleteOptions{}))
	status := run(t, "hub", "status", "--context", "hub", "-o", "json")
	require.Contains(t, status.out, `"healthy": false`)
	require.Contains(t, status.out, "it is scaled to 0")
	late := runsOut(t, "", "is scaled to 0", "hub", "status", "--context", "hub", "--wait")
	require.Contains(t, late.err, "kubectl scale -n open-cluster-management deploy/cluster-manager --replicas=1 --context hub")

	var found map[string]finding
	eventually(t, func() bool {
		found = looked(t, "hub", "--context", "hub")
		return found["OCM0205"].Code != ""
	}, patience, 500*time.Millisecond, "the definition goes in the background")
	// A conversion may be served from a cache of the API server.
	require.Regexp(t, "^[78] of 15 webhooks do not answer$", found["OCM0206"].Title)
	require.Equal(t, "set by others: replicas: 0", found["OCM0208"].Cause)
	require.Equal(t, "it is scaled to 0", found["OCM0203"].Cause)
	for _, code := range []string{"OCM0203", "OCM0205", "OCM0206", "OCM0208"} {
		require.Equal(t, "kubectl ocm hub init --context hub", found[code].Fix)
	}
	typeLine(t, found["OCM0203"].Fix)
	eventually(t, func() bool {
		found = looked(t, "hub", "--context", "hub", "--skip", "OCM0204")
		return len(found) == 0
	}, patience, 500*time.Millisecond, "%v", &found)
	gates := `{"spec":{"registrationConfiguration":{"featureGates":%s}}}`
	patched(t, hub, managers, "", "cluster-manager", fmt.Sprintf(gates, `[{"feature":"NoSuchGate","mode":"Enable"}]`))
	told(t, "OCM0202", "NoSuchGate", "hub", "--context", "hub")
	patched(t, hub, managers, "", "cluster-manager", fmt.Sprintf(gates, "null"))
	require.Zero(t, run(t, "hub", "status", "--context", "hub", "--wait", "--timeout", "5m").code)
	require.Contains(t, run(t, "hub", "status", "--context", "hub", "-o", "json").out, `"healthy": true`)
}

func clusterFaults(t *testing.T, hub *harness.Cluster) {
	args := []string{"cluster", "cluster1", "--context", "hub"}
	require.Zero(t, run(t, "cluster", "deny", "cluster1", "--context", "hub", "--yes").code)
	mended(t, "OCM0306", args...)

	label := `{"metadata":{"labels":{"cluster.open-cluster-management.io/clusterset":"%s"}}}`
	patched(t, hub, clusters, "", "cluster1", strings.Replace(label, "%s", "nosuch", 1))
	mended(t, "OCM0312", args...)
	patched(t, hub, clusters, "", "cluster1", strings.Replace(label, "%s", "other", 1))
	require.Zero(t, run(t, "clusterset", "delete", "nosuch", "--context", "hub", "--yes").code)
}

// agentlessFaults plants the faults of a cluster that is on the hub, and whose agent does
// not run. The commands check the cluster at its address.
func agentlessFaults(t *testing.T, hub, spoke *harness.Cluster) {
	client := hub.Dynamic(t)
	check := []string{"cluster", "asks", "--context", "hub"}
	registers(t, client, "asks", false)
	patched(t, hub, clusters, "", "asks", `{"spec":{"managedClusterClientConfigs":[{"url":"`+spoke.Config.Host+`"}]}}`)
	ask(t, bearer(hub, newToken(t, "--context", "hub").Token), "asks", "agent")
	mended(t, "OCM0301", check...)
	told(t, "OCM0303", "klusterlet/klusterlet", check...)

	mc, err := client.Resource(clusters).Get(t.Context(), "asks", metav1.GetOptions{})
	require.NoError(t, err)
	reports(t, client, mc, "False")
	told(t, "OCM0305", "klusterlet/klusterlet", check...)
	ask(t, bearer(hub, newToken(t, "--context", "hub").Token), "asks", "other")
	mended(t, "OCM0309", check...)

	patched(t, hub, clusters, "", "asks", `{"spec":{"leaseDurationSeconds":1}}`)
	told(t, "OCM0304", "klusterlet/klusterlet", check...)

	require.Zero(t, runWith(t, agent, "work", "apply", "held", "-f", "-", "-c", "asks", "--context", "hub").code)
	patched(t, hub, works, "asks", "held", `{"metadata":{"finalizers":["cluster.open-cluster-management.io/manifest-work-cleanup"]}}`)
	require.NoError(t, client.Resource(clusters).Delete(t.Context(), "asks", metav1.DeleteOptions{}))
	mended(t, "OCM0307", check...)

	registers(t, client, "waits", true)
	ask(t, bearer(hub, newToken(t, "--context", "hub").Token), "waits", "agent")
	mended(t, "OCM0302", "cluster", "waits", "--context", "hub")
	require.Zero(t, run(t, "cluster", "remove", "waits", "--context", "hub", "--force", "--yes").code)
}

// addOnFaults plants the faults of add-ons on cluster1.
func addOnFaults(t *testing.T, hub *harness.Cluster) {
	client := hub.Dynamic(t)
	create := func(resource schema.GroupVersionResource, kind, namespace, name string, spec map[string]any) {
		t.Helper()
		made := object(resource.GroupVersion().String(), kind, namespace, name, map[string]any{"spec": spec})
		_, err := client.Resource(resource).Namespace(namespace).Create(t.Context(), made, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	register := func(name string, spec map[string]any) {
		t.Helper()
		create(registrations, "ClusterManagementAddOn", "", name, spec)
	}
	check := func(name string) []string { return []string{"addon", name, "--context", "hub"} }
	gone := func(name string) {
		t.Helper()
		require.Zero(t, run(t, "addon", "delete", name, "--context", "hub", "--yes", "--ignore-not-found").code)
	}
	byPlacement := map[string]any{"installStrategy": map[string]any{
		"type": "Placements", "placements": []any{map[string]any{"namespace": "default", "name": "nowhere"}},
	}}

	require.Zero(t, run(t, "clusterset", "bind", "other", "-n", "default", "--context", "hub").code)
	register("placed", byPlacement)
	mended(t, "OCM0702", check("placed")...)
	patched(t, hub, registrations, "", "placed", `{"metadata":{"annotations":{"addon.open-cluster-management.io/lifecycle":"self"}}}`)
	mended(t, "OCM0701", check("placed")...)
	gone("placed")
	require.Zero(t, run(t, "clusterset", "unbind", "other", "-n", "default", "--context", "hub", "--yes").code)
	require.Zero(t, run(t, "placement", "delete", "nowhere", "-n", "default", "--context", "hub", "--yes").code)

	_, err := client.Resource(namespaces).Create(t.Context(), object("v1", "Namespace", "", "nocluster", nil), metav1.CreateOptions{})
	require.NoError(t, err)
	register("lost", map[string]any{})
	create(instances, "ManagedClusterAddOn", "nocluster", "lost", map[string]any{})
	mended(t, "OCM0709", check("lost")...)
	gone("lost")
	require.NoError(t, client.Resource(namespaces).Delete(t.Context(), "nocluster", metav1.DeleteOptions{}))

	// The test fills in what no program can know: where the manifests are.
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "agent.yaml"), []byte(strings.ReplaceAll(agent, "namespace: agents", "namespace: nosuch")), 0o600))
	register("untemplated", map[string]any{"supportedConfigs": []any{map[string]any{
		"group":         "addon.open-cluster-management.io",
		"resource":      "addontemplates",
		"defaultConfig": map[string]any{"name": "untemplated-1.0.0"},
	}}})
	typeLine(t, strings.Replace(found(t, "OCM0710", check("untemplated")...).Fix, "FOLDER", folder, 1))
	require.Empty(t, looked(t, check("untemplated")...))
	require.Zero(t, run(t, "addon", "enable", "untemplated", "-c", "cluster1", "--context", "hub").code)
	patched(t, hub, instances, "cluster1", "untemplated", `{"spec":{"configs":[{"group":"example.com","resource":"things","name":"x"}]}}`)
	mended(t, "OCM0703", check("untemplated")...)
	told(t, "OCM0706", "addon-untemplated-deploy-0", check("untemplated")...)
	gone("untemplated")

	register("foreign", map[string]any{})
	create(instances, "ManagedClusterAddOn", "cluster1", "foreign", map[string]any{})
	for _, tc := range []struct{ code, condition, is, want string }{
		{"OCM0704", "RegistrationApplied", "False", "as the test says"},
		{"OCM0707", "Degraded", "True", "as the test says"},
	} {
		status := fmt.Appendf(nil, `{"status":{"conditions":[{"type":%q,"status":%q,"reason":"Test","message":"as the test says",`+
			`"lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`, tc.condition, tc.is)
		api := client.Resource(instances).Namespace("cluster1")
		_, err := api.Patch(t.Context(), "foreign", types.MergePatchType, status, metav1.PatchOptions{}, "status")
		require.NoError(t, err)
		told(t, tc.code, tc.want, check("foreign")...)
	}
	gone("foreign")
}

func placementFaults(t *testing.T, hub *harness.Cluster) {
	check := []string{"placement", "default/probe", "--context", "hub"}
	require.Zero(t, run(t, "placement", "create", "probe", "-n", "default", "--context", "hub").code)
	unbound := looked(t, check...)["OCM0501"]
	require.Equal(t, "there are the sets default, eu, global, other", unbound.Cause, "which one is meant nobody can know")
	typeLine(t, strings.Replace(unbound.Fix, "<set>", "other", 1))
	require.Empty(t, looked(t, check...))
	require.Zero(t, run(t, "clusterset", "unbind", "other", "-n", "default", "--context", "hub", "--yes").code)

	require.Zero(t, run(t, "clusterset", "create", "gold", "--selector", "tier=gold", "--context", "hub").code)
	require.Zero(t, run(t, "clusterset", "bind", "gold", "-n", "default", "--context", "hub").code)
	hint := run(t, "placement", "explain", "default/probe", "--context", "hub")
	require.Contains(t, hint.out+hint.err, "kubectl label managedcluster cluster1 --overwrite tier=gold --context hub")
	mended(t, "OCM0503", check...)
	patched(t, hub, clusters, "", "cluster1", `{"metadata":{"labels":{"tier":null}}}`)
	require.Zero(t, run(t, "placement", "delete", "default/probe", "--context", "hub", "--yes").code)
	require.Zero(t, run(t, "clusterset", "unbind", "gold", "-n", "default", "--context", "hub", "--yes").code)
	require.Zero(t, run(t, "clusterset", "delete", "gold", "--context", "hub", "--yes").code)
	selectionFaults(t, hub)
}

// selectionFaults plants the faults of placements whose namespace is bound.
func selectionFaults(t *testing.T, hub *harness.Cluster) {
	const namespace = "default"
	client := hub.Dynamic(t)
	require.Zero(t, run(t, "clusterset", "bind", "other", "-n", namespace, "--context", "hub").code)
	for _, tc := range []struct{ code, spec, want string }{
		{"OCM0502", `{"clusterSets":["other","eu"]}`, ""},
		{
			"OCM0504",
			`{"predicates":[{"requiredClusterSelector":{"labelSelector":{"matchLabels":{"no":"where"}}}}]}`,
			"cluster1",
		},
		{"OCM0505", `{"numberOfClusters":5}`, "cluster1"},
		{"OCM0507", `{"prioritizerPolicy":{"mode":"Exact","configurations":[{"weight":1,"scoreCoordinate":` +
			`{"type":"AddOn","addOn":{"resourceName":"demo","scoreName":"cpu"}}}]}}`, "No resources found"},
	} {
		name := strings.ToLower(tc.code)
		var spec map[string]any
		require.NoError(t, json.Unmarshal([]byte(tc.spec), &spec))
		placement := object(placements.GroupVersion().String(), "Placement", namespace, name, map[string]any{"spec": spec})
		_, err := client.Resource(placements).Namespace(namespace).Create(t.Context(), placement, metav1.CreateOptions{})
		require.NoError(t, err)
		check := []string{"placement", namespace + "/" + name, "--context", "hub"}
		if tc.want == "" {
			mended(t, tc.code, check...)
		} else {
			told(t, tc.code, tc.want, check...)
		}
		require.Zero(t, run(t, "placement", "delete", namespace+"/"+name, "--context", "hub", "--yes").code)
	}
	for _, set := range []string{"eu", "other"} {
		require.Zero(t, run(t, "clusterset", "unbind", set, "-n", namespace, "--context", "hub", "--yes").code)
	}
}

func agentFaults(t *testing.T, hub, spoke *harness.Cluster, gate *harness.Gate) {
	const namespace, deployment = "open-cluster-management-agent", "klusterlet-agent"
	check := []string{"spoke", "--context", "spoke", "--hub-context", "hub"}
	// Meanwhile a work vanishes from the hub.
	require.Zero(t, runWith(t, configMap, "work", "apply", "vanishes", "-f", "-", "-c", "cluster1", "--context", "hub", "--wait", "--timeout", "5m").code)
	stoppedBy(t, spoke, namespace, deployment)
	require.NotContains(t, run(t, append([]string{"check"}, check...)...).out, "is well", "it is from before")
	patched(t, hub, works, "cluster1", "vanishes", `{"metadata":{"finalizers":null}}`)
	require.NoError(t, hub.Dynamic(t).Resource(works).Namespace("cluster1").Delete(t.Context(), "vanishes", metav1.DeleteOptions{}))
	f := mended(t, "OCM0402", check...)
	require.Contains(t, f.Cause, "is scaled to 0")
	require.Contains(t, mended(t, "OCM0630", check...).Cause, "vanishes;")
	_, err := spoke.Dynamic(t).Resource(configMaps).Namespace("default").Get(t.Context(), "greeting", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "its object is left: %v", err)

	// No agent runs when the name is edited: how an agent reacts to that is tested
	// elsewhere.
	stoppedBy(t, spoke, namespace, deployment)
	patched(t, spoke, klusterlets, "", "klusterlet", `{"spec":{"clusterName":"other"}}`)
	require.Equal(t, "klusterlet/klusterlet names cluster other, but the agent is cluster1", mended(t, "OCM0406", check...).Title)
	mended(t, "OCM0402", check...)

	// Its certificate is unusable, and it has to request another one.
	stoppedBy(t, spoke, namespace, deployment)
	patched(t, spoke, secrets, namespace, "hub-kubeconfig-secret", `{"data":{"tls.crt":"bm9uZQ=="}}`)
	f = looked(t, check...)["OCM0404"]
	require.Equal(t, "the agent's certificate cannot be read", f.Title)
	typeLine(t, f.Fix)
	mended(t, "OCM0402", check...)
	eventually(t, func() bool {
		return strings.Contains(run(t, "accept", "--show", "--context", "hub").out, "pending")
	}, patience, 500*time.Millisecond, "the agent does not ask")
	mended(t, "OCM0404", check...)
	eventually(t, func() bool { return len(looked(t, check...)) == 0 }, patience, 500*time.Millisecond)

	patched(t, spoke, klusterlets, "", "klusterlet", `{"spec":{"hubApiServerHostAlias":{"ip":"10.0.0.1","hostname":"hub.example.com"}}}`)
	told(t, "OCM0403", "leaves out: hubApiServerHostAlias", check...)
	patched(t, spoke, klusterlets, "", "klusterlet", `{"spec":{"hubApiServerHostAlias":null}}`)

	// The hub is no longer at the address that the agent uses.
	gate.Cut()
	require.Contains(t, mended(t, "OCM0405", check...).Title, "the hub at "+gate.Server+" does not answer")
}
