// SPDX-License-Identifier: Apache-2.0

package template_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/addon/template"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

// pods maps the kinds that run pods to the path of the pod spec.
var pods = map[string][]any{
	"apps/v1 Deployment": {
		"spec",
		"template",
		"spec",
	}, "apps/v1 DaemonSet": {
		"spec",
		"template",
		"spec",
	}, "apps/v1 StatefulSet": {
		"spec",
		"template",
		"spec",
	},
	"apps/v1 ReplicaSet": {"spec", "template", "spec"}, "batch/v1 Job": {"spec", "template", "spec"},
	"batch/v1 CronJob": {"spec", "jobTemplate", "spec", "template", "spec"}, "v1 Pod": {"spec"},
}

// running returns a manifest of a kind, with one init container and one container.
func running(kind, name string, path []any) string {
	version, kind, _ := strings.Cut(kind, " ")
	spec := `{initContainers: [{name: init, image: "quay.io/a/init:1"}], containers: [{name: main, image: "quay.io/a/main:1"}]}`
	for i := len(path) - 1; i > 0; i-- {
		spec = fmt.Sprintf("{%s: %s}", path[i], spec)
	}
	return fmt.Sprintf(
		"{apiVersion: %s, kind: %s, metadata: {name: %s, namespace: web}, spec: %s}", version, kind, name, spec,
	)
}

func TestEveryKindThatRunsPodsIsFitted(t *testing.T) {
	for kind, path := range pods {
		t.Run(kind, func(t *testing.T) {
			in := registered(t, given(t, deployment, running(kind, "x", path)), kubeClient)
			in = configured(
				t, in,
				`{nodePlacement: {nodeSelector: {a: b}}, registries: [{source: quay.io, mirror: local}],
					resourceRequirements: [{containerID: "*:x:.+", resources: {limits: {cpu: "1"}}}]}`,
			)
			u := rendered(t, in).Manifests[1]
			require.Equal(t, map[string]any{"a": "b"}, at(t, u, append(path, "nodeSelector")...))
			require.Equal(t, "hub-kubeconfig", at(t, u, append(path, "volumes", 0, "name")...))
			for _, field := range []string{"initContainers", "containers"} {
				c := at(t, u, append(path, field, 0)...)
				require.Equal(t, []string{"HUB_KUBECONFIG=/managed/hub-kubeconfig/kubeconfig", "CLUSTER_NAME=cluster1"}, env(t, c))
				require.Contains(t, c.(map[string]any)["image"], "local/a/")
				require.Equal(t, map[string]any{"limits": map[string]any{"cpu": "1"}}, c.(map[string]any)["resources"])
				require.Equal(t, "/managed/hub-kubeconfig", at(t, u, append(path, field, 0, "volumeMounts", 0, "mountPath")...))
			}
		})
	}
}

func TestOtherKindsStayAsTheyAre(t *testing.T) {
	const other = `{apiVersion: example.com/v1, kind: Deployment, metadata: {name: x}, spec: {template: {spec: {containers: [{name: a, image: "quay.io/a:1"}]}}}}`
	in := configured(t, registered(t, given(t, other), kubeClient), `{registries: [{mirror: local}]}`)
	require.Empty(t, at(t, rendered(t, in).Manifests[0], "spec", "template", "spec", "containers", 0, "env"))
	require.Equal(
		t, "quay.io/a:1", at(t, rendered(t, in).Manifests[0], "spec", "template", "spec", "containers", 0, "image"),
	)
}

func TestContainersLearnWhoAndWhereTheyAre(t *testing.T) {
	for name, tc := range map[string]struct {
		registered  bool
		config, own string
		want        []string
	}{
		"the cluster": {want: []string{"CLUSTER_NAME=cluster1"}},
		"with registrations": {
			registered: true,
			want:       []string{"HUB_KUBECONFIG=/managed/hub-kubeconfig/kubeconfig", "CLUSTER_NAME=cluster1"},
		},
		"with a namespace": {
			config: "agentInstallNamespace: ns",
			want:   []string{"CLUSTER_NAME=cluster1", "INSTALL_NAMESPACE=ns"},
		},
		"customized variables are not there": {
			config: "customizedVariables: [{name: A, value: b}]",
			want:   []string{"CLUSTER_NAME=cluster1"},
		},
		"the file by the configuration": {
			registered: true,
			config:     "customizedVariables: [{name: HUB_KUBECONFIG, value: /x}]",
			want:       []string{"HUB_KUBECONFIG=/x", "CLUSTER_NAME=cluster1"},
		},
		"after the container's own": {own: `[{name: A, value: b}]`, want: []string{"A=b", "CLUSTER_NAME=cluster1"}},
		"instead of the container's own": {
			own:  `[{name: CLUSTER_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}, {name: A, value: b}]`,
			want: []string{"CLUSTER_NAME=cluster1", "A=b"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			manifest := deployment
			if tc.own != "" {
				manifest = strings.Replace(deployment, "name: agent, image", "name: agent, env: "+tc.own+", image", 1)
			}
			in := given(t, manifest)
			if tc.registered {
				in = registered(t, in, kubeClient)
			}
			if tc.config != "" {
				in = configured(t, in, tc.config)
			}
			c := at(t, rendered(t, in).Manifests[0], "spec", "template", "spec", "containers", 0)
			require.Equal(t, tc.want, env(t, c))
			require.NotContains(t, fmt.Sprint(c), "valueFrom")
		})
	}
}

func TestAVolumeOfTheTemplateStays(t *testing.T) {
	in := registered(t, given(t, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: agent, namespace: web}
spec:
  template:
    spec:
      containers: [{name: agent, volumeMounts: [{name: own, mountPath: /managed/hub-kubeconfig}]}]
      volumes: [{name: hub-kubeconfig, secret: {secretName: mine}}]
`), kubeClient)
	u := rendered(t, in).Manifests[0]
	require.Equal(
		t, []any{map[string]any{"name": "hub-kubeconfig", "secret": map[string]any{"secretName": "mine"}}},
		at(t, u, "spec", "template", "spec", "volumes"),
	)
	require.Equal(
		t, []any{map[string]any{"name": "own", "mountPath": "/managed/hub-kubeconfig"}},
		at(t, u, "spec", "template", "spec", "containers", 0, "volumeMounts"),
	)
}

// Pods wait forever for a secret in another namespace; Open Cluster Management mounts it in
// Deployments and DaemonSets in any namespace.
func TestCredentialsOutsideTheInstallNamespace(t *testing.T) {
	elsewhere := func(manifest string) string {
		return strings.Replace(manifest, "namespace: web", "namespace: other", 1)
	}
	for kind, path := range pods {
		in := registered(t, given(t, deployment, elsewhere(running(kind, "x", path))), kubeClient)
		out := rendered(t, in)
		require.Equal(t, "web", out.Namespace)
		mounted := at(t, out.Manifests[1], append(path, "volumes")...) != nil
		require.Equal(t, kind == "apps/v1 Deployment" || kind == "apps/v1 DaemonSet", mounted, kind)
	}
}

func TestNodesAndTolerations(t *testing.T) {
	const own = `nodeSelector: {own: "1"}
      tolerations: [{key: own}]
      containers:`
	manifest := strings.Replace(deployment, "containers:", own, 1)
	for name, tc := range map[string]struct {
		config                string
		selector, tolerations any
	}{
		"nothing wanted": {"{}", map[string]any{"own": "1"}, []any{map[string]any{"key": "own"}}},
		"both": {
			"nodePlacement: {nodeSelector: {a: b}, tolerations: [{key: k}]}",
			map[string]any{"a": "b"},
			[]any{map[string]any{"key": "k"}},
		},
		"a selector alone": {
			"nodePlacement: {nodeSelector: {a: b}}",
			map[string]any{"a": "b"},
			[]any{map[string]any{"key": "own"}},
		},
		"tolerations alone": {
			"nodePlacement: {tolerations: [{key: k, effect: NoExecute, tolerationSeconds: 5}]}",
			map[string]any{"own": "1"},
			[]any{map[string]any{"key": "k", "effect": "NoExecute", "tolerationSeconds": int64(5)}},
		},
		"an empty nodePlacement": {"nodePlacement: {}", map[string]any{"own": "1"}, []any{map[string]any{"key": "own"}}},
	} {
		t.Run(name, func(t *testing.T) {
			u := rendered(t, configured(t, given(t, manifest), tc.config)).Manifests[0]
			require.Equal(t, tc.selector, at(t, u, "spec", "template", "spec", "nodeSelector"))
			require.Equal(t, tc.tolerations, at(t, u, "spec", "template", "spec", "tolerations"))
		})
	}
}

func TestImages(t *testing.T) {
	for name, tc := range map[string]struct{ image, config, annotation, want string }{
		"nobody says anything": {"quay.io/a/b:1", "", "", "quay.io/a/b:1"},
		"a source":             {"quay.io/a/b:1", `[{source: quay.io/a, mirror: local/c}]`, "", "local/c/b:1"},
		"slashes at the end":   {"quay.io/a/b:1", `[{source: quay.io/a/, mirror: local/c/}]`, "", "local/c/b:1"},
		"the whole name":       {"quay.io/a/b:1", `[{source: quay.io/a/b, mirror: local/c}]`, "", "local/c:1"},
		"a digest": {
			"quay.io/a/b@sha256:0",
			`[{source: quay.io/a/b, mirror: local/c}]`,
			"",
			"local/c@sha256:0",
		},
		"another source":                   {"quay.io/a/b:1", `[{source: docker.io, mirror: local}]`, "", "quay.io/a/b:1"},
		"a source that ends within a word": {"quay.io/ab/c:1", `[{source: quay.io/a, mirror: local}]`, "", "quay.io/ab/c:1"},
		"every source":                     {"quay.io/a/b:1", `[{mirror: local/c}]`, "", "local/c/b:1"},
		"every source, of a short name":    {"b:1", `[{mirror: local/c}]`, "", "local/c/b:1"},
		"the last one that fits": {
			"quay.io/a/b:1",
			`[{source: quay.io, mirror: one}, {source: quay.io/a, mirror: two}, {source: docker.io, mirror: three}]`,
			"",
			"two/b:1",
		},
		"no mirror":      {"quay.io/a/b:1", `[{source: quay.io, mirror: ""}]`, "", "quay.io/a/b:1"},
		"by the cluster": {"quay.io/a/b:1", "", `{"registries":[{"source":"quay.io/a","mirror":"c"}]}`, "c/b:1"},
		"the configuration beats the cluster": {
			"quay.io/a/b:1",
			`[{source: quay.io/a, mirror: cfg}]`,
			`{"registries":[{"source":"quay.io/a","mirror":"c"}]}`,
			"cfg/b:1",
		},
		"the configuration replaces all of it": {
			"quay.io/a/b:1",
			`[{source: docker.io, mirror: cfg}]`,
			`{"registries":[{"source":"quay.io/a","mirror":"c"}]}`,
			"quay.io/a/b:1",
		},
		"the annotation is gone": {"quay.io/a/b:1", "", `{}`, "quay.io/a/b:1"},
	} {
		t.Run(name, func(t *testing.T) {
			in := given(t, strings.Replace(deployment, "quay.io/a/agent:1", tc.image, 1))
			if tc.config != "" {
				in = configured(t, in, "registries: "+tc.config)
			}
			if tc.annotation != "" {
				in.Cluster.Annotations = map[string]string{clusterv1.AnnotationImageRegistries: tc.annotation}
			}
			require.Equal(t, tc.want, at(t, rendered(t, in).Manifests[0], "spec", "template", "spec", "containers", 0, "image"))
		})
	}
}

func TestAnAnnotationThatIsNotJSONIsTheFaultOfTheCluster(t *testing.T) {
	in := given(t, deployment)
	in.Cluster.Annotations = map[string]string{clusterv1.AnnotationImageRegistries: "quay.io"}
	_, err := template.Render(in)
	require.EqualError(t, err, "ManagedCluster cluster1: metadata.annotations[open-cluster-management.io/image-registries]: "+
		"is not a JSON object with registries; "+
		`write {"registries":[{"source":"quay.io/a","mirror":"registry.local/a"}]}`)
}

func TestProxy(t *testing.T) {
	const file = "CA_BUNDLE_FILE_PATH=/managed/proxy-ca/ca-bundle.crt"
	for name, tc := range map[string]struct {
		config string
		want   []string
		bundle bool
	}{
		"none": {"{}", nil, false},
		"http": {"{httpProxy: a}", []string{"HTTP_PROXY=a", "http_proxy=a"}, false},
		"https": {
			"{httpsProxy: b, noProxy: c}",
			[]string{"HTTPS_PROXY=b", "https_proxy=b", "NO_PROXY=c", "no_proxy=c"},
			false,
		},
		"exceptions alone": {"{noProxy: c}", nil, false},
		"all seven": {
			"{httpProxy: a, httpsProxy: b, noProxy: c, caBundle: UEVN}",
			[]string{"HTTP_PROXY=a", "http_proxy=a", "HTTPS_PROXY=b", "https_proxy=b", "NO_PROXY=c", "no_proxy=c", file},
			true,
		},
		"a CA bundle alone is whole too": {"{caBundle: UEVN}", []string{file}, true},
	} {
		t.Run(name, func(t *testing.T) {
			out := rendered(t, configured(t, given(t, deployment), "proxyConfig: "+tc.config))
			got := env(t, at(t, out.Manifests[0], "spec", "template", "spec", "containers", 0))
			require.Equal(t, append([]string{"CLUSTER_NAME=cluster1"}, tc.want...), got)
			volumes := at(t, out.Manifests[0], "spec", "template", "spec", "volumes")
			if !tc.bundle {
				require.Len(t, out.Manifests, 1)
				require.Nil(t, volumes)
				return
			}
			require.Equal(
				t, []any{map[string]any{"name": "proxy-ca-bundle", "configMap": map[string]any{"name": "hello-proxy-ca"}}}, volumes,
			)
			require.Equal(
				t, "/managed/proxy-ca",
				at(t, out.Manifests[0], "spec", "template", "spec", "containers", 0, "volumeMounts", 0, "mountPath"),
			)
			require.Len(t, out.Manifests, 2)
			require.Equal(
				t, "hello-proxy-ca web PEM",
				fmt.Sprint(
					out.Manifests[1].GetName(), " ", out.Manifests[1].GetNamespace(), " ",
					at(t, out.Manifests[1], "data", "ca-bundle.crt"),
				),
			)
		})
	}
}

// A hook that uses a proxy fails, or waits for a bundle that is removed with the rest: only
// Deployments and DaemonSets get the proxy settings.
func TestTheProxyIsForDeploymentsAndDaemonSets(t *testing.T) {
	for kind, path := range pods {
		t.Run(kind, func(t *testing.T) {
			in := configured(
				t, given(t, deployment, running(kind, "x", path)),
				"proxyConfig: {httpProxy: a, httpsProxy: b, noProxy: c, caBundle: UEVN}",
			)
			out := rendered(t, in)
			told := kind == "apps/v1 Deployment" || kind == "apps/v1 DaemonSet"
			for _, field := range []string{"initContainers", "containers"} {
				require.Equal(
					t, told, slices.Contains(env(t, at(t, out.Manifests[1], append(path, field, 0)...)), "HTTPS_PROXY=b"), field,
				)
			}
			require.Equal(t, told, at(t, out.Manifests[1], append(path, "volumes")...) != nil)
			require.Contains(t, env(t, at(t, out.Manifests[0], "spec", "template", "spec", "containers", 0)), "HTTPS_PROXY=b")
		})
	}
}

// A pod can only read a ConfigMap of its own namespace.
func TestTheCABundleIsWhereItsReadersAre(t *testing.T) {
	in := configured(
		t, given(t, deployment, strings.Replace(deployment, "namespace: web", "namespace: other", 1)),
		"proxyConfig: {caBundle: UEVN}",
	)
	var where []string
	for _, u := range rendered(t, in).Manifests[2:] {
		where = append(where, u.GetKind()+" "+u.GetNamespace())
	}
	require.Equal(t, []string{"ConfigMap other", "ConfigMap web"}, where)
}

func TestResources(t *testing.T) {
	for name, tc := range map[string]struct{ config, want string }{
		"by kind and names":             {`[{containerID: "deployments:agent:agent", resources: {limits: {cpu: "1"}}}]`, "1"},
		"by any kind and expressions":   {`[{containerID: "*:ag.*:.+", resources: {limits: {cpu: "1"}}}]`, "1"},
		"any object":                    {`[{containerID: "*:*:agent", resources: {limits: {cpu: "1"}}}]`, "1"},
		"any object, another container": {`[{containerID: "*:*:gent", resources: {limits: {cpu: "1"}}}]`, ""},
		"everything":                    {`[{containerID: "*:*:*", resources: {limits: {cpu: "1"}}}]`, "1"},
		"the last one that fits": {
			`[{containerID: "*:.+:.+", resources: {limits: {cpu: "1"}}},
				{containerID: "deployments:.+:.+", resources: {limits: {cpu: "2"}}},
				{containerID: "jobs:.+:.+", resources: {limits: {cpu: "3"}}}]`,
			"2",
		},
		"another kind":      {`[{containerID: "daemonsets:agent:agent", resources: {limits: {cpu: "1"}}}]`, ""},
		"another object":    {`[{containerID: "deployments:agen:agent", resources: {limits: {cpu: "1"}}}]`, ""},
		"another container": {`[{containerID: "deployments:agent:gent", resources: {limits: {cpu: "1"}}}]`, ""},
		"an expression with colons": {
			`[{containerID: "deployments:(?:agent|x):(?:y|agent)", resources: {limits: {cpu: "1"}}}]`,
			"1",
		},
		"an alternative is a whole one": {
			`[{containerID: "deployments:a|agent:agent", resources: {limits: {cpu: "1"}}}]`,
			"1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			out := rendered(t, configured(t, given(t, deployment), "resourceRequirements: "+tc.config))
			got := at(t, out.Manifests[0], "spec", "template", "spec", "containers", 0, "resources")
			if tc.want == "" {
				require.Nil(t, got)
				return
			}
			require.Equal(t, map[string]any{"limits": map[string]any{"cpu": tc.want}}, got)
		})
	}
}

// The API allows several configurations of a kind; Open Cluster Management reads only the
// first one.
func TestEveryConfigurationCountsTheFirstMost(t *testing.T) {
	in := configured(t, given(t, deployment, configMap("{{A}} {{B}}")), `
agentInstallNamespace: one
customizedVariables: [{name: A, value: one}]
registries: [{source: quay.io/a, mirror: one}]
nodePlacement: {nodeSelector: {node: one}}
`)
	in = configured(t, in, `
agentInstallNamespace: two
customizedVariables: [{name: A, value: two}, {name: B, value: two}]
registries: [{source: quay.io, mirror: two}]
nodePlacement: {nodeSelector: {node: two}, tolerations: [{key: two}]}
proxyConfig: {httpProxy: two}
`)
	out := rendered(t, in)
	require.Equal(t, "one", out.Namespace)
	require.Equal(t, "one two", at(t, out.Manifests[1], "data", "text"))
	pod := []any{"spec", "template", "spec"}
	require.Equal(t, "one/agent:1", at(t, out.Manifests[0], append(pod, "containers", 0, "image")...))
	require.Equal(t, map[string]any{"node": "one"}, at(t, out.Manifests[0], append(pod, "nodeSelector")...))
	require.Equal(t, "two", at(t, out.Manifests[0], append(pod, "tolerations", 0, "key")...))
	require.Contains(t, env(t, at(t, out.Manifests[0], append(pod, "containers", 0)...)), "HTTP_PROXY=two")
}
