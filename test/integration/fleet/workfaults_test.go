// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
)

// brokenWorks are works that cannot be applied, each for a reason of its own, by the code that
// check has for it. LONG is half of what annotations may have.
var brokenWorks = map[string]string{
	"OCM0311": `workload: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: other, namespace: strict}}]}`,
	"OCM0621": `workload: {manifests: [{apiVersion: node.k8s.io/v1, kind: RuntimeClass, metadata: {name: forbidden}, handler: runc}]}`,
	"OCM0622": `workload: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: invalid, namespace: default}, data: {no key: x}}]}`,
	"OCM0623": `workload: {manifests: [{apiVersion: example.com/v1, kind: Widget, metadata: {name: unknown, namespace: default}}]}`,
	"OCM0624": `workload: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: nowhere, namespace: nosuch}}]}`,
	"OCM0625": `{workload: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: contested, namespace: default}, data: {by: the work}}]},` +
		`manifestConfigs: [{resourceIdentifier: {group: "", resource: configmaps, name: contested, namespace: default},` +
		`updateStrategy: {type: ServerSideApply}}]}`,
	"OCM0626": `workload: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: shared, namespace: default}, data: {by: the newer}}]}`,
	"OCM0627": `workload: {manifests: [{apiVersion: v1, kind: Pod, metadata: {name: refused, namespace: strict},` +
		`spec: {containers: [{name: a, image: a, securityContext: {privileged: true}}]}}]}`,
	"OCM0628": `workload: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: long, namespace: default, annotations: {a: LONG}}}]}`,
	"OCM0629": `{workload: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: delegated, namespace: default}}]},` +
		`executor: {subject: {type: ServiceAccount, serviceAccount: {namespace: default, name: runner}}}}`,
}

// workFaults plants works that cannot be applied, sees them all in one run of check, and types
// its fixes.
func workFaults(t *testing.T, hub, spoke *harness.Cluster) {
	client, there := hub.Dynamic(t), spoke.Dynamic(t)
	patched(t, hub, clusters, "", "cluster1", `{"spec":{"managedClusterClientConfigs":[{"url":"`+spoke.Config.Host+`"}]}}`)
	strict := object("v1", "Namespace", "", "strict", nil)
	strict.SetLabels(map[string]string{"pod-security.kubernetes.io/enforce": "restricted"})
	_, err := there.Resource(namespaces).Create(t.Context(), strict, metav1.CreateOptions{})
	require.NoError(t, err)
	closed := object("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "", "closed", map[string]any{"webhooks": []any{map[string]any{
		"name": "closed.example.com", "clientConfig": map[string]any{"url": "https://127.0.0.1:1/"}, "sideEffects": "None",
		"admissionReviewVersions": []any{"v1"}, "timeoutSeconds": int64(1),
		"namespaceSelector": map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": "strict"}},
		"rules": []any{map[string]any{
			"apiGroups": []any{""}, "apiVersions": []any{"v1"}, "resources": []any{"configmaps"}, "operations": []any{"CREATE"},
		}},
	}}})
	_, err = there.Resource(hooks).Create(t.Context(), closed, metav1.CreateOptions{})
	require.NoError(t, err)
	half := strings.Repeat("long ", 30_000)
	for _, name := range []string{"contested", "long"} {
		made := object("v1", "ConfigMap", "default", name, map[string]any{"data": map[string]any{"by": "somebody"}})
		made.SetAnnotations(map[string]string{"somebody": half})
		_, err = there.Resource(configMaps).Namespace("default").Create(t.Context(), made, metav1.CreateOptions{FieldManager: "somebody"})
		require.NoError(t, err)
	}
	plant := func(name, text string) {
		t.Helper()
		var spec map[string]any
		require.NoError(t, yaml.Unmarshal([]byte(strings.Replace(text, "LONG", half, 1)), &spec))
		made := object(works.GroupVersion().String(), "ManifestWork", "cluster1", name, map[string]any{"spec": spec})
		_, err := client.Resource(works).Namespace("cluster1").Create(t.Context(), made, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	plant("base", strings.Replace(brokenWorks["OCM0626"], "the newer", "the older", 1))
	eventually(t, func() bool {
		_, err := there.Resource(configMaps).Namespace("default").Get(t.Context(), "shared", metav1.GetOptions{})
		return err == nil
	}, patience, 100*time.Millisecond)
	for code, text := range brokenWorks {
		plant(strings.ToLower(code), text)
	}
	args := []string{"cluster", "cluster1", "--context", "hub"}
	var all map[string]finding
	eventually(t, func() bool {
		all = looked(t, args...)
		return len(all) == len(brokenWorks)
	}, patience, 500*time.Millisecond, "%v", &all)
	require.Contains(t, run(t, "check", "--context", "hub").out, "1 of 1 available, agents v", "what its works lack is not its own fault")
	for code, want := range map[string][2]string{
		"OCM0311": {"0 of 1 objects are healthy", `failed calling webhook "closed.example.com"`},
		"OCM0621": {"the agent may not write it", `cannot get resource "runtimeclasses" in API group "node.k8s.io"`},
		"OCM0622": {"an object of it is not valid", `ConfigMap "invalid" is invalid: data[no key]`},
		"OCM0623": {"the cluster has no kind Widget", "install its CustomResourceDefinition"},
		"OCM0624": {"the cluster has no namespace nosuch", `namespaces "nosuch" not found`},
		"OCM0625": {"another field manager owns fields of it", `conflict with "somebody"`},
		"OCM0626": {"the older work base declares the same object", "configmap/shared: Applied=False"},
		"OCM0627": {"a policy of the cluster refuses it", "violates PodSecurity"},
		"OCM0628": {"an object of it is too large", "may not be more than 262144 bytes"},
		"OCM0629": {"its executor may not apply it", "ServiceAccount default/runner lacks"},
	} {
		require.Regexp(t, "^work "+strings.ToLower(code)+" is not applied[:,] "+want[0]+"$", all[code].Title)
		require.Contains(t, all[code].Cause, want[1])
	}
	for _, code := range []string{"OCM0621", "OCM0622", "OCM0624", "OCM0625", "OCM0629"} {
		typeAll(t, all[code].Fix)
	}
	for code, want := range map[string]string{"OCM0311": "strict/other", "OCM0623": "NAME", "OCM0626": "cluster1/base"} {
		require.Contains(t, typeLine(t, all[code].Fix), want)
	}
	for _, code := range []string{"OCM0627", "OCM0628"} {
		require.Equal(t, "kubectl edit manifestwork "+strings.ToLower(code)+" -n cluster1 --context hub      and correct what is named", all[code].Fix)
	}
	eventually(t, func() bool {
		all = looked(t, args...)
		for _, code := range []string{"OCM0311", "OCM0623", "OCM0626", "OCM0627", "OCM0628"} {
			if all[code].Code == "" {
				return false
			}
		}
		return len(all) == 5
	}, patience, 500*time.Millisecond, "%v", &all)
	for _, name := range append(workNames(), "base") {
		require.Zero(t, run(t, "work", "delete", name, "-c", "cluster1", "--context", "hub", "--yes", "--wait=false").code)
	}
	typeLine(t, "kubectl delete clusterrole ocm-works-runtimeclasses.node.k8s.io --context spoke")
	typeLine(t, "kubectl delete role,rolebinding runner-configmaps -n default --context spoke")
	typeLine(t, "kubectl delete namespace nosuch strict --wait=false --context spoke")
	typeLine(t, "kubectl delete validatingwebhookconfiguration closed --context spoke")
	typeLine(t, "kubectl delete configmap contested long --ignore-not-found --context spoke")
	eventually(t, func() bool { return len(looked(t, args...)) == 0 }, patience, 500*time.Millisecond)
}

// workNames are the names of the broken works.
func workNames() []string {
	var out []string
	for code := range brokenWorks {
		out = append(out, strings.ToLower(code))
	}
	return out
}

// typeAll types each of the commands that a printed line joins.
func typeAll(t *testing.T, line string) {
	t.Helper()
	line, _, _ = strings.Cut(line, "      ")
	for one := range strings.SplitSeq(line, " && ") {
		typeLine(t, one)
	}
}
