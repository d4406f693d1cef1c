// SPDX-License-Identifier: Apache-2.0

package template_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/addon/template"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

const (
	deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: agent, namespace: web}
spec:
  template:
    spec:
      containers: [{name: agent, image: "quay.io/a/agent:1"}]
`
	kubeClient = `[{type: KubeClient}]`
)

// given returns the input for add-on hello on cluster1, with a template of these manifests.
func given(t *testing.T, manifests ...string) template.Input {
	t.Helper()
	in := template.Input{
		Template: &addonv1alpha1.AddOnTemplate{
			ObjectMeta: metav1.ObjectMeta{Name: "hello-1"}, Spec: addonv1alpha1.AddOnTemplateSpec{AddonName: "hello"},
		},
		AddOn:   &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Name: "hello", Namespace: "cluster1"}},
		Cluster: &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "cluster1"}},
	}
	for _, text := range manifests {
		raw, err := yaml.YAMLToJSON([]byte(text))
		require.NoError(t, err)
		in.Template.Spec.AgentSpec.Workload.Manifests = append(
			in.Template.Spec.AgentSpec.Workload.Manifests,
			workv1.Manifest{RawExtension: runtime.RawExtension{Raw: raw}},
		)
	}
	return in
}

// configured adds an AddOnDeploymentConfig, which leaves the namespace alone unless its spec
// sets one.
func configured(t *testing.T, in template.Input, spec string) template.Input {
	t.Helper()
	c := &addonv1alpha1.AddOnDeploymentConfig{ObjectMeta: metav1.ObjectMeta{Name: "settings", Namespace: "cfg"}}
	c.Spec.AgentInstallNamespace = ptr.To("")
	require.NoError(t, yaml.UnmarshalStrict([]byte(spec), &c.Spec))
	in.Configs = append(in.Configs, c)
	return in
}

// registered adds registrations to the template.
func registered(t *testing.T, in template.Input, spec string) template.Input {
	t.Helper()
	require.NoError(t, yaml.UnmarshalStrict([]byte(spec), &in.Template.Spec.Registration))
	return in
}

func rendered(t *testing.T, in template.Input) template.Result {
	t.Helper()
	out, err := template.Render(in)
	require.NoError(t, err)
	return out
}

// text returns the objects as YAML.
func text(t *testing.T, objects ...*unstructured.Unstructured) string {
	t.Helper()
	var parts []string
	for _, u := range objects {
		raw, err := yaml.Marshal(u.Object)
		require.NoError(t, err)
		parts = append(parts, string(raw))
	}
	return strings.Join(parts, "---\n")
}

// at reads a field by its path; numbers are list indexes.
func at(t *testing.T, u *unstructured.Unstructured, path ...any) any {
	t.Helper()
	var value any = u.Object
	for _, step := range path {
		switch s := step.(type) {
		case int:
			list, ok := value.([]any)
			require.True(t, ok && s < len(list), "%v of %v in\n%s", s, path, text(t, u))
			value = list[s]
		case string:
			m, ok := value.(map[string]any)
			require.True(t, ok, "%v of %v in\n%s", s, path, text(t, u))
			value = m[s]
		}
	}
	return value
}

// env returns the variables of a container in order.
func env(t *testing.T, container any) []string {
	t.Helper()
	var out []string
	list, _ := container.(map[string]any)["env"].([]any)
	for _, e := range list {
		m := e.(map[string]any)
		value, _ := m["value"].(string)
		out = append(out, m["name"].(string)+"="+value)
	}
	return out
}

// The complete rendering of an add-on with everything that a template and a configuration can
// set.
func TestWhatAClusterGetsOfATemplate(t *testing.T) {
	in := given(t, `
apiVersion: v1
kind: Namespace
metadata: {name: web}
`, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: agent, namespace: web, labels: {cluster: "{{CLUSTER_NAME}}"}}
spec:
  replicas: 1
  template:
    metadata: {labels: {app: agent}}
    spec:
      containers:
      - name: agent
        image: quay.io/a/agent:1
        args: ["--hub={{HUB_KUBECONFIG}}", "--level={{LEVEL}}", "--namespace={{INSTALL_NAMESPACE}}"]
`)
	in = registered(t, in, `
- type: KubeClient
  kubeClient: {hubPermissions: [{type: CurrentCluster, currentCluster: {clusterRoleName: reader}}]}
- type: CustomSigner
  customSigner: {signerName: example.com/signer.a, signingCA: {name: ca}, subject: {user: u, groups: [g], organizationUnit: [o]}}
`)
	in = configured(t, in, `
agentInstallNamespace: agents
customizedVariables: [{name: LEVEL, value: "4"}]
nodePlacement:
  nodeSelector: {disk: fast}
  tolerations: [{key: edge, operator: Exists, tolerationSeconds: 30}]
registries: [{source: quay.io/a, mirror: registry.local/b}]
proxyConfig: {httpProxy: "http://p:3128", httpsProxy: "https://p:3129", noProxy: .svc, caBundle: UEVN}
resourceRequirements: [{containerID: "deployments:agent:agent", resources: {requests: {cpu: 50m}, limits: {memory: 64Mi}}}]
`)
	out := rendered(t, in)
	require.Empty(t, out.Warnings)
	require.Equal(t, "agents", out.Namespace)
	want := `apiVersion: v1
kind: Namespace
metadata:
  name: agents
---
apiVersion: apps/v1
kind: Deployment
metadata:
  labels:
    cluster: cluster1
  name: agent
  namespace: agents
spec:
  replicas: 1
  template:
    metadata:
      labels:
        app: agent
    spec:
      containers:
      - args:
        - --hub=/managed/hub-kubeconfig/kubeconfig
        - --level=4
        - --namespace=agents
        env:
        - name: HUB_KUBECONFIG
          value: /managed/hub-kubeconfig/kubeconfig
        - name: CLUSTER_NAME
          value: cluster1
        - name: INSTALL_NAMESPACE
          value: agents
        - name: HTTP_PROXY
          value: http://p:3128
        - name: http_proxy
          value: http://p:3128
        - name: HTTPS_PROXY
          value: https://p:3129
        - name: https_proxy
          value: https://p:3129
        - name: NO_PROXY
          value: .svc
        - name: no_proxy
          value: .svc
        - name: CA_BUNDLE_FILE_PATH
          value: /managed/proxy-ca/ca-bundle.crt
        image: registry.local/b/agent:1
        name: agent
        resources:
          limits:
            memory: 64Mi
          requests:
            cpu: 50m
        volumeMounts:
        - mountPath: /managed/hub-kubeconfig
          name: hub-kubeconfig
        - mountPath: /managed/example.com-signer.a
          name: cert-example-com-signer-a
        - mountPath: /managed/proxy-ca
          name: proxy-ca-bundle
      nodeSelector:
        disk: fast
      tolerations:
      - key: edge
        operator: Exists
        tolerationSeconds: 30
      volumes:
      - name: hub-kubeconfig
        secret:
          secretName: hello-hub-kubeconfig
      - name: cert-example-com-signer-a
        secret:
          secretName: hello-example.com-signer.a-client-cert
      - configMap:
          name: hello-proxy-ca
        name: proxy-ca-bundle
---
apiVersion: v1
data:
  ca-bundle.crt: PEM
kind: ConfigMap
metadata:
  name: hello-proxy-ca
  namespace: agents
`
	require.Empty(t, cmp.Diff(want, text(t, out.Manifests...)))
}

func TestRenderingIsPure(t *testing.T) {
	in := registered(
		t,
		given(
			t, deployment,
			"{apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: web}, data: {a: '{{CLUSTER_NAME}}{{NONE}}'}}",
		),
		kubeClient,
	)
	in = configured(
		t, in, "{agentInstallNamespace: agents, nodePlacement: {nodeSelector: {a: b}}, proxyConfig: {caBundle: UEVN}}",
	)
	before, err := json.Marshal(in)
	require.NoError(t, err)
	first := rendered(t, in)
	first.Manifests[0].SetName("changed by the caller")
	first = rendered(t, in)
	for range 20 {
		require.Empty(t, cmp.Diff(first, rendered(t, in)))
	}
	after, err := json.Marshal(in)
	require.NoError(t, err)
	require.Equal(t, string(before), string(after))
}

func TestAnErrorNamesTheObjectTheManifestAndTheField(t *testing.T) {
	const place = "AddOnTemplate hello-1: spec.agentSpec.workload.manifests[0]"
	for name, tc := range map[string]struct {
		manifest, config, want string
	}{
		"no kind": {
			manifest: `{apiVersion: v1, metadata: {name: x}}`,
			want:     place + ": kind: must be set; write the kind, for example ConfigMap",
		},
		"no apiVersion": {
			manifest: `{kind: ConfigMap, metadata: {name: x, namespace: web}}`,
			want:     place + " (ConfigMap web/x): apiVersion: must be set; write the group and version, for example apps/v1",
		},
		"no name": {
			manifest: `{apiVersion: v1, kind: ConfigMap, metadata: {}}`,
			want:     place + " (ConfigMap ): metadata.name: must be set; give the object a name",
		},
		"not an object": {
			manifest: `[1]`,
			want:     place + ": the manifest is not an object; write apiVersion, kind and metadata",
		},
		"a list of objects": {
			manifest: `{apiVersion: v1, kind: List, items: []}`,
			want:     place + " (List ): items: a list is not an object; put each item into workload.manifests",
		},
		"a value that makes a name impossible": {
			manifest: `{apiVersion: v1, kind: ConfigMap, metadata: {name: "a{{X}}", namespace: web}}`,
			config:   `{customizedVariables: [{name: X, value: /../b}]}`,
			want:     place + ` (ConfigMap web/a{{X}}): metadata.name: may not contain '/'; correct "a/../b"`,
		},
		"a name that has no value": {
			manifest: `{apiVersion: v1, kind: ConfigMap, metadata: {name: "{{X}}", namespace: web}}`,
			want:     place + " (ConfigMap web/{{X}}): metadata.name: must be set; give the object a name",
		},
		"two keys that become one": {
			manifest: `{apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: web}, data: {"a-{{X}}": "1", a-b: "2"}}`,
			config:   `{customizedVariables: [{name: X, value: b}]}`,
			want:     place + ` (ConfigMap web/x): a-{{X}}: becomes "a-b", which already exists beside it; use variables whose values differ`,
		},
		"pods without a spec": {
			manifest: `{apiVersion: apps/v1, kind: Deployment, metadata: {name: x, namespace: web}, spec: {template: {}}}`,
			want:     place + " (Deployment web/x): spec.template.spec: must be an object; describe the pods there",
		},
		"pods without containers": {
			manifest: `{apiVersion: v1, kind: Pod, metadata: {name: x, namespace: web}, spec: {}}`,
			want:     place + " (Pod web/x): spec.containers: must be set; name at least one container",
		},
		"an env that is no list": {
			manifest: `{apiVersion: v1, kind: Pod, metadata: {name: x, namespace: web}, spec: {containers: [{name: a, env: {A: b}}]}}`,
			want:     place + " (Pod web/x): spec.containers[0].env: must be a list; write one object per item",
		},
		"a container that is no object": {
			manifest: `{apiVersion: v1, kind: Pod, metadata: {name: x, namespace: web}, spec: {containers: [a]}}`,
			want:     place + " (Pod web/x): spec.containers[0]: must be an object; write its fields",
		},
		"subjects that are no list": {
			manifest: `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: x}, subjects: {}}`,
			config:   `{agentInstallNamespace: a}`,
			want:     place + " (ClusterRoleBinding x): subjects: must be a list; write one object per item",
		},
		"resources for a kind that does not exist": {
			manifest: deployment, config: `{resourceRequirements: [{containerID: "deploys:a:b", resources: {}}]}`,
			want: "AddOnDeploymentConfig cfg/settings: spec.resourceRequirements[0].containerID: " +
				"must be the plural of a kind or *, and two regular expressions or *, with colons between them; " +
				"write for example deployments:my-agent:.+",
		},
		"a CA bundle that is no text": {
			manifest: deployment, config: `{proxyConfig: {caBundle: /w==}}`,
			want: "AddOnDeploymentConfig cfg/settings: spec.proxyConfig.caBundle: is not text; encode PEM certificates by base64, once",
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := given(t, tc.manifest)
			if tc.config != "" {
				in = configured(t, in, tc.config)
			}
			_, err := template.Render(in)
			require.EqualError(t, err, tc.want)
			var typed *template.Error
			require.ErrorAs(t, err, &typed)
		})
	}
}

func TestWhatDoesNotBelongTogetherIsRefused(t *testing.T) {
	in := given(t, deployment)
	in.Template.Spec.AddonName = "other"
	_, err := template.Render(in)
	require.EqualError(
		t, err,
		`AddOnTemplate hello-1: spec.addonName: is not "hello", the add-on that it is used for; name this add-on, or use another template`,
	)

	in = given(t)
	_, err = template.Render(in)
	require.EqualError(
		t, err,
		"AddOnTemplate hello-1: spec.agentSpec.workload.manifests: must not be empty; put the objects of the agent there",
	)

	in = given(t, deployment)
	in.AddOn.Annotations = map[string]string{addonv1alpha1.AnnotationHostingClusterName: "host"}
	_, err = template.Render(in)
	require.EqualError(t, err, "ManagedClusterAddOn cluster1/hello: metadata.annotations[addon.open-cluster-management.io/hosting-cluster-name]: "+
		"an add-on that is made of a template does not run on a hosting cluster; remove the annotation, also from the ManagedCluster")
}
