// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-ocm/kubectl-ocm/config/crd"
	"github.com/kubectl-ocm/kubectl-ocm/internal/service"
	connectv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/connect/v1alpha1"
	library "github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
)

// shellLine runs a printed line of kubectl commands in a shell.
func shellLine(t *testing.T, line string) {
	t.Helper()
	require.NotContains(t, line, "<")
	binaries, err := harness.Binaries(t.Context())
	require.NoError(t, err)
	command := exec.CommandContext(t.Context(), "sh", "-c", line)
	command.Env = append(environment(t), "PATH="+filepath.Dir(binaries.Kubectl)+string(os.PathListSeparator)+os.Getenv("PATH"))
	said, err := command.CombinedOutput()
	require.NoError(t, err, "%s\n%s", line, said)
}

// TestWhatAHubInheritsIsNamed gives a hub what hubs of old releases and hands have left of it.
func TestWhatAHubInheritsIsNamed(t *testing.T) {
	t.Parallel()
	hub := harness.Fresh(t, "hub")
	contexts(t, map[string]*harness.Cluster{"hub": hub})
	client := asHub(t, hub)
	healthy := looked(t, "hub", "--context", "hub")
	for _, code := range []string{"OCM0217", "OCM0218", "OCM0219", "OCM0220"} {
		require.NotContains(t, healthy, code)
	}
	t.Run("versions that are gone", func(t *testing.T) { storedFaults(t, client) })
	t.Run("the rights of clusters that join", func(t *testing.T) { joiningFaults(t, hub) })
	t.Run("the right to copy tokens", func(t *testing.T) { copyingFaults(t, hub) })
	t.Run("another way to clusters", func(t *testing.T) { otherWay(t, hub) })
}

// joiningFaults takes a right from those who ask to join, then the account of join tokens out of its
// binding, then one binding away.
func joiningFaults(t *testing.T, hub *harness.Cluster) {
	const role, binding = "open-cluster-management:bootstrap", "open-cluster-management:bootstrap:"
	check := []string{"hub", "--context", "hub"}
	p := typist{more: " --wait=false"}
	patched(t, hub, library.ClusterRoles, "", role, `{"rules":[{"apiGroups":[""],"resources":["configmaps"],"verbs":["get"]},`+
		`{"apiGroups":["cluster.open-cluster-management.io"],"resources":["managedclusters","managedclustersets/join"],"verbs":["*"]}]}`)
	p.mendedBy(t, "OCM0218", "they lack: create certificatesigningrequests, watch certificatesigningrequests", check...)
	patched(t, hub, library.ClusterBindings, "", binding+"agent-registration",
		`{"subjects":[{"kind":"ServiceAccount","namespace":"open-cluster-management","name":"other"}]}`)
	p.mendedBy(t, "OCM0218", "clusters with join tokens may not ask to join", check...)
	require.NoError(t, hub.Dynamic(t).Resource(library.ClusterBindings).Delete(t.Context(), binding+"managedcluster", metav1.DeleteOptions{}))
	p.mendedBy(t, "OCM0218", "clusters with bootstrap tokens may not ask to join", check...)
}

// copyingFaults turns on what copies tokens beside ClusterProfiles, without the right to do so, then takes a part of
// the right away, and then the binding.
func copyingFaults(t *testing.T, hub *harness.Cluster) {
	const right = "cluster-manager-credentials"
	gates := func(mode string) {
		patched(t, hub, library.ClusterManagers, "", "cluster-manager", `{"spec":{"registrationConfiguration":{"featureGates":[{"feature":"ClusterProfile",`+
			`"mode":"`+mode+`"}]},"addOnManagerConfiguration":{"featureGates":[{"feature":"ManagedServiceAccount","mode":"Enable"}]}}}`)
	}
	check := []string{"hub", "--context", "hub"}
	p := typist{more: " --wait=false"}
	gates("Disable")
	require.NotContains(t, looked(t, check...), "OCM0220", "one gate is not enough")
	gates("Enable")
	f := found(t, "OCM0220", check...)
	require.Equal(t, "no tokens are copied beside ClusterProfiles", f.Title)
	require.Equal(t, "kubectl set subject clusterrolebinding cluster-manager-credentials "+
		"--serviceaccount=open-cluster-management-hub:addon-manager-controller-sa --context hub", f.Fix)
	p.mendedBy(t, "OCM0220", "addon-manager-controller-sa may not list secrets, watch secrets, get secrets, create secrets", check...)
	patched(t, hub, library.ClusterRoles, "", right, `{"rules":[{"apiGroups":[""],"resources":["secrets"],"verbs":["get","list","watch","create"]}]}`)
	p.mendedBy(t, "OCM0220", "may not patch secrets, delete secrets", check...)
	require.NoError(t, hub.Dynamic(t).Resource(library.ClusterBindings).Delete(t.Context(), right, metav1.DeleteOptions{}))
	p.mendedBy(t, "OCM0220", "may not list secrets", check...)
	gates("Disable")
}

// otherWay installs the add-on cluster-proxy, and leaves what its old releases read.
func otherWay(t *testing.T, hub *harness.Cluster) {
	client, check := hub.Dynamic(t), []string{"hub", "--context", "hub"}
	for kind, plural := range map[string]string{
		"ManagedProxyConfiguration":   connectv1alpha1.ResourceProxyConfigurations,
		"ManagedProxyServiceResolver": connectv1alpha1.ResourceProxyResolvers,
	} {
		definition := object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", plural+"."+connectv1alpha1.GroupVersionAddOn.Group,
			map[string]any{"spec": map[string]any{
				"group": connectv1alpha1.GroupVersionAddOn.Group, "scope": "Cluster",
				"names": map[string]any{"kind": kind, "plural": plural, "singular": strings.ToLower(kind)},
				"versions": []any{map[string]any{
					"name": "v1alpha1", "served": true, "storage": true,
					"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
				}},
			}})
		_, err := client.Resource(definitions).Create(t.Context(), definition, metav1.CreateOptions{})
		require.NoError(t, err)
		isServed(t, client, definition)
	}
	of := func(plural string) dynamic.ResourceInterface {
		return client.Resource(connectv1alpha1.GroupVersionAddOn.WithResource(plural))
	}
	version := connectv1alpha1.GroupVersionAddOn.String()
	refused := run(t, "proxy", "adopt", "--context", "hub")
	require.Equal(t, 1, refused.code)
	require.Contains(t, refused.err, "the add-on cluster-proxy exposes nothing that a cluster could take")
	for name, spec := range map[string]map[string]any{
		"logs": {
			"managedClusterSelector": map[string]any{"type": "ManagedClusterSet", "managedClusterSet": map[string]any{"name": "default"}},
			"serviceSelector":        map[string]any{"type": "ServiceRef", "serviceRef": map[string]any{"namespace": "ops", "name": "logs"}},
		},
		"odd": {"serviceSelector": map[string]any{"type": "ServiceRef", "serviceRef": map[string]any{"namespace": "ops", "name": "odd"}}},
	} {
		_, err := of(connectv1alpha1.ResourceProxyResolvers).Create(t.Context(), object(version, "ManagedProxyServiceResolver", "", name,
			map[string]any{"spec": spec}), metav1.CreateOptions{})
		require.NoError(t, err)
	}
	refused = run(t, "proxy", "adopt", "--context", "hub")
	require.Equal(t, 1, refused.code)
	require.Contains(t, refused.err, "managedproxyserviceresolver/logs is for the clusters of the set default; "+
		"managedproxyserviceresolver/odd selects its clusters by something else than a cluster set")
	require.Contains(t, refused.err, "fix:   kubectl ocm proxy adopt --clusterset default --context hub\n")
	typo := run(t, "proxy", "adopt", "--clusterset", "default", "--context", "hub")
	require.Equal(t, 1, typo.code)
	require.Contains(t, typo.err, `there is no cluster set "default"`)
	sets := client.Resource(library.ManagedClusterSets)
	for _, name := range []string{"default", "other"} {
		_, err := sets.Create(t.Context(), object("cluster.open-cluster-management.io/v1beta2", "ManagedClusterSet", "", name, nil), metav1.CreateOptions{})
		require.NoError(t, err)
		defer func() { require.NoError(t, sets.Delete(context.Background(), name, metav1.DeleteOptions{})) }()
	}
	list := adopted(t, "--clusterset", "default")
	require.Equal(t, map[string]string{"resolver.logs": "- namespace: ops\n  service: logs\n"}, list.data)
	require.Contains(t, list.err, "warning: not in this list: managedproxyserviceresolver/odd selects")
	require.NoError(t, of(connectv1alpha1.ResourceProxyResolvers).Delete(t.Context(), "odd", metav1.DeleteOptions{}))
	require.Equal(t, 1, run(t, "proxy", "adopt", "--clusterset", "other", "--context", "hub").code)
	f := mended(t, "OCM0219", check...)
	require.Equal(t, "managedproxyserviceresolver/logs has no effect", f.Title)
	require.Contains(t, f.Cause, "Services are exposed by the configmap cluster-proxy-exposed-services")
	require.Equal(t, "kubectl delete managedproxyserviceresolver logs --context hub      before that, kubectl ocm proxy adopt --clusterset default "+
		"--context hub prints what exposes its Service through this hub", f.Fix)

	_, err := of(connectv1alpha1.ResourceProxyConfigurations).Create(t.Context(), object(version, "ManagedProxyConfiguration", "", "cluster-proxy",
		map[string]any{"spec": map[string]any{"proxyServer": map[string]any{"namespace": "default"}}}), metav1.CreateOptions{})
	require.NoError(t, err)
	const beside, fix = "leads to its clusters beside the add-on cluster-proxy",
		"fix:   kubectl ocm proxy adopt --context hub | kubectl ocm work apply cluster-proxy-exposed-services -f - -c <clusters> --context hub"
	require.NotContains(t, run(t, append([]string{"check"}, check...)...).out, beside, "the gate is off")
	patched(t, hub, library.ClusterManagers, "", "cluster-manager",
		`{"spec":{"registrationConfiguration":{"featureGates":[{"feature":"ClusterProxy","mode":"Enable"}]}}}`)
	got := run(t, append([]string{"check"}, check...)...)
	require.Contains(t, got.out, beside)
	require.Contains(t, got.out, "leads to Services that each cluster lists itself")
	require.NotContains(t, got.out, fix)
	_, err = client.Resource(library.ConfigMaps).Namespace("default").Create(t.Context(),
		object("v1", "ConfigMap", "default", connectv1alpha1.ConfigMapExposedServices, map[string]any{"data": map[string]any{
			"ours":   "- {namespace: apps, service: web, port: 8080, protocol: http}\n- {namespace: apps, service: db, port: sql}\n",
			"theirs": `[{"namespace": "ops", "service": "all"}, {"namespace": "default", "service": "kubernetes"}]`,
			"none":   "what: ever",
		}}), metav1.CreateOptions{})
	require.NoError(t, err)
	require.Contains(t, run(t, append([]string{"check"}, check...)...).out, fix)
	require.NotContains(t, looked(t, check...), "OCM0219", "it is no fault")
	carried(t, hub)
}

// carried types what check says beside the add-on, and looks at what is sent.
func carried(t *testing.T, hub *harness.Cluster) {
	list := adopted(t)
	require.Equal(t, map[string]string{
		"ours":   "- namespace: apps\n  port: 8080\n  protocol: http\n  service: web\n",
		"theirs": "- namespace: ops\n  service: all\n",
	}, list.data)
	for _, left := range []string{
		`key ours: entry 2: port "sql" must be a number`, "key theirs: entry 2: it is the API server, which managedclusters/proxy leads to",
		"key none: it is not a list",
	} {
		require.Contains(t, list.err, "warning: not in this list: configmap default/cluster-proxy-exposed-services, "+left)
	}
	read, err := service.ReadList(list.data)
	require.NoError(t, err, "agents take it")
	require.Equal(t, 2, read.Len())

	client := hub.Dynamic(t)
	registers(t, client, "exposing", true)
	_, err = client.Resource(library.Namespaces).Create(t.Context(), object("v1", "Namespace", "", "exposing", nil), metav1.CreateOptions{})
	require.NoError(t, err)
	sent := runWith(t, list.out, "work", "apply", "cluster-proxy-exposed-services", "-f", "-", "-c", "exposing", "--context", "hub", "--wait=false")
	require.Zero(t, sent.code)
	work, err := client.Resource(library.ManifestWorks).Namespace("exposing").Get(t.Context(), "cluster-proxy-exposed-services", metav1.GetOptions{})
	require.NoError(t, err)
	text, err := work.MarshalJSON()
	require.NoError(t, err)
	require.Contains(t, string(text), `"name":"cluster-proxy-exposed-services","namespace":"open-cluster-management-agent"`)
}

// adoption is what proxy adopt prints.
type adoption struct {
	said
	data map[string]string
}

func adopted(t *testing.T, words ...string) adoption {
	t.Helper()
	out := adoption{said: run(t, append([]string{"proxy", "adopt", "--context", "hub"}, words...)...)}
	require.Zero(t, out.code)
	var list corev1.ConfigMap
	require.NoError(t, yaml.UnmarshalStrict([]byte(strings.TrimPrefix(out.out, "---\n")), &list))
	require.Equal(t, "open-cluster-management-agent/cluster-proxy-exposed-services", list.Namespace+"/"+list.Name)
	out.data = list.Data
	return out
}

// storedFaults stores a placement as hubs did whose version of placements is gone, and hides a version
// in which sets may be stored.
func storedFaults(t *testing.T, client dynamic.Interface) {
	const placementsName, setsName = "placements.cluster.open-cluster-management.io", "managedclustersets.cluster.open-cluster-management.io"
	api := client.Resource(definitions)
	check := []string{"hub", "--context", "hub"}
	old, err := api.Get(t.Context(), placementsName, metav1.GetOptions{})
	require.NoError(t, err)
	versions, _, err := unstructured.NestedSlice(old.Object, "spec", "versions")
	require.NoError(t, err)
	first := (&unstructured.Unstructured{Object: versions[0].(map[string]any)}).DeepCopy().Object
	first["name"] = "v1alpha1"
	body, err := json.Marshal([]map[string]any{
		{"op": "replace", "path": "/spec/versions/0/storage", "value": false},
		{"op": "add", "path": "/spec/versions/0", "value": first},
	})
	require.NoError(t, err)
	old, err = api.Patch(t.Context(), placementsName, types.JSONPatchType, body, metav1.PatchOptions{})
	require.NoError(t, err)
	isServed(t, client, old)
	require.Zero(t, run(t, "placement", "create", "old", "-n", "default", "--context", "hub").code)

	f := found(t, "OCM0217", check...)
	require.Equal(t, placementsName+" may be stored in v1alpha1, which is no longer served", f.Title)
	require.Equal(t, "Kubernetes refuses the hub's definition until nothing is stored in v1alpha1", f.Cause)
	require.Equal(t, 3, strings.Count(f.Fix, " && ")+1, f.Fix)
	shellLine(t, f.Fix)
	require.NotContains(t, looked(t, check...), "OCM0217")
	own, err := crd.Get(placementsName)
	require.NoError(t, err)
	raw, err := own.MarshalJSON()
	require.NoError(t, err)
	_, err = api.Patch(t.Context(), placementsName, types.MergePatchType, raw, metav1.PatchOptions{})
	require.NoError(t, err, "the hub's own definition is taken")
	require.Contains(t, run(t, "placement", "list", "-n", "default", "--context", "hub").out, "old")
	require.Zero(t, run(t, "placement", "delete", "old", "-n", "default", "--context", "hub", "--yes").code)

	hidden := []byte(`{"status":{"storedVersions":["v1beta1","v1beta2"]}}`)
	_, err = api.Patch(t.Context(), setsName, types.MergePatchType, hidden, metav1.PatchOptions{}, "status")
	require.NoError(t, err)
	hide := []byte(`[{"op":"test","path":"/spec/versions/0/name","value":"v1beta1"},{"op":"replace","path":"/spec/versions/0/served","value":false}]`)
	_, err = api.Patch(t.Context(), setsName, types.JSONPatchType, hide, metav1.PatchOptions{})
	require.NoError(t, err)
	f = found(t, "OCM0217", check...)
	require.Equal(t, setsName+" may be stored in v1beta1, which is no longer served", f.Title)
	require.Equal(t, "warning", string(f.Severity))
	shellLine(t, f.Fix)
	eventually(t, func() bool {
		_, still := looked(t, check...)["OCM0217"]
		return !still
	}, patience, 500*time.Millisecond)
}

// agentRightsFaults edits a role of an agent, deletes a binding, and takes the role admin away.
func agentRightsFaults(t *testing.T, spoke *harness.Cluster) {
	check := []string{"spoke", "--context", "spoke", "--hub-context", "hub"}
	require.NotContains(t, looked(t, check...), "OCM0413")
	p := typist{more: " --wait=false"}
	patched(t, spoke, library.ClusterRoles, "", "kubectl-ocm:klusterlet-work:agent", `{"rules":[{"apiGroups":["work.open-cluster-management.io"],`+
		`"resources":["appliedmanifestworks","appliedmanifestworks/finalizers"],"verbs":["*"]},`+
		`{"apiGroups":[""],"resources":["serviceaccounts"],"verbs":["impersonate"]}]}`)
	// The role kubectl-ocm:klusterlet allows to create subjectaccessreviews, too.
	p.mendedBy(t, "OCM0413", "; it may not update appliedmanifestworks/status, patch appliedmanifestworks/status", check...)

	client := spoke.Dynamic(t)
	require.NoError(t, client.Resource(library.ClusterBindings).Delete(t.Context(), "kubectl-ocm:klusterlet-registration:agent", metav1.DeleteOptions{}))
	p.mendedBy(t, "OCM0413", "it may not get nodes, list nodes, watch nodes", check...)

	require.NoError(t, client.Resource(library.ClusterBindings).Delete(t.Context(), "kubectl-ocm:klusterlet-work:execution-admin", metav1.DeleteOptions{}))
	p.mendedBy(t, "OCM0413", "it may not create configmaps, create deployments", check...)
	_, err := client.Resource(library.ClusterBindings).Get(t.Context(), "kubectl-ocm:klusterlet-work:execution-admin", metav1.GetOptions{})
	require.NoError(t, err)
}
