// SPDX-License-Identifier: Apache-2.0

package template_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/addon/template"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
)

func TestInstallNamespace(t *testing.T) {
	const (
		daemonSet = `{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: d, namespace: ds}, spec: {template: {spec: {containers: [{name: a}]}}}}`
		config    = `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: cm}}`
	)
	second := strings.Replace(deployment, "namespace: web", "namespace: second", 1)
	for name, tc := range map[string]struct {
		manifests []string
		config    string
		want      string
	}{
		"that of the first Deployment":         {[]string{config, daemonSet, deployment, second}, "", "web"},
		"else that of the first DaemonSet":     {[]string{config, daemonSet}, "", "ds"},
		"else the default":                     {[]string{config}, "", addonv1alpha1.DefaultInstallNamespace},
		"that of the configuration":            {[]string{deployment}, "agentInstallNamespace: agents", "agents"},
		"a configuration that leaves it alone": {[]string{deployment}, `agentInstallNamespace: ""`, "web"},
	} {
		t.Run(name, func(t *testing.T) {
			in := given(t, tc.manifests...)
			in.AddOn.Spec.InstallNamespace = "ignored"
			if tc.config != "" {
				in = configured(t, in, tc.config)
			}
			require.Equal(t, tc.want, rendered(t, in).Namespace)
		})
	}
}

func TestAConfigurationWithoutANamespaceMovesTheAddOnAndSaysSo(t *testing.T) {
	in := configured(t, given(t, deployment), "{}")
	in.Configs[0].Spec.AgentInstallNamespace = nil
	out := rendered(t, in)
	require.Equal(t, addonv1alpha1.DefaultInstallNamespace, out.Namespace)
	require.Equal(t, addonv1alpha1.DefaultInstallNamespace, out.Manifests[0].GetNamespace())
	require.Equal(t, []string{"AddOnDeploymentConfig cfg/settings: spec.agentInstallNamespace: moves the add-on from namespace web to " +
		`open-cluster-management-agent-addon, the default of the API for an unset field; write "" to leave it in web`}, out.Warnings)
}

func TestTheNamespaceOfTheConfigurationIsThatOfEverything(t *testing.T) {
	const before = `
apiVersion: v1
kind: Namespace
metadata: {name: web, labels: {a: b}}
---
apiVersion: v1
kind: Namespace
metadata: {name: second}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: agent}
---
apiVersion: example.com/v1
kind: Thing
metadata: {name: x, namespace: web}
---
apiVersion: example.com/v1
kind: ClusterThing
metadata: {name: x}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: b}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: r}
subjects: [{kind: ServiceAccount, name: agent, namespace: web}, {kind: User, name: u}, {kind: Group, name: g}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: b, namespace: second}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: r}
subjects: [{kind: ServiceAccount, name: agent}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: nobody, namespace: web}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: r}
`
	const after = `
apiVersion: v1
kind: Namespace
metadata: {name: agents, labels: {a: b}}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: agent, namespace: agents}
---
apiVersion: example.com/v1
kind: Thing
metadata: {name: x, namespace: agents}
---
apiVersion: example.com/v1
kind: ClusterThing
metadata: {name: x}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: b}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: r}
subjects: [{kind: ServiceAccount, name: agent, namespace: agents}, {kind: User, name: u}, {kind: Group, name: g}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: b, namespace: agents}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: r}
subjects: [{kind: ServiceAccount, name: agent, namespace: agents}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: nobody, namespace: agents}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: r}
`
	out := rendered(t, configured(t, given(t, strings.Split(before, "---")...), "agentInstallNamespace: agents"))
	require.Empty(
		t, cmp.Diff(text(t, rendered(t, given(t, strings.Split(after, "---")...)).Manifests...), text(t, out.Manifests...)),
	)
	// Without one, nothing is moved.
	still := rendered(t, given(t, strings.Split(before, "---")...))
	require.Len(t, still.Manifests, 8)
	require.Equal(t, []string{"web", "second"}, []string{still.Manifests[0].GetName(), still.Manifests[1].GetName()})
	require.Equal(
		t,
		[]string{
			"AddOnTemplate hello-1: spec.agentSpec.workload.manifests[2] (ServiceAccount agent): metadata.namespace: " +
				"must be set, because the kind is namespaced; name one",
		},
		still.Warnings,
	)
}

func TestTwoManifestsThatAreOneObject(t *testing.T) {
	const one = `{apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: one}, data: {a: b}}`
	other := strings.Replace(one, "a: b", "a: c", 1)
	elsewhere := strings.Replace(other, "namespace: one", "namespace: two", 1)
	const refusal = "AddOnTemplate hello-1: spec.agentSpec.workload.manifests[1] (ConfigMap %s/x): metadata.name: is, as ConfigMap %s/x, that of " +
		"spec.agentSpec.workload.manifests[0], with another content; use another name, or remove one of them"

	require.Len(t, rendered(t, given(t, one, elsewhere)).Manifests, 2)
	require.Len(t, rendered(t, configured(t, given(t, one, one), "agentInstallNamespace: agents")).Manifests, 1)
	_, err := template.Render(configured(t, given(t, one, elsewhere), "agentInstallNamespace: agents"))
	require.EqualError(
		t, err, strings.NewReplacer("(ConfigMap %s/x)", "(ConfigMap two/x)", "%s", "agents").Replace(refusal),
	)

	_, err = template.Render(configured(
		t, given(t, strings.Replace(one, "name: x", "name: hello-proxy-ca", 1)),
		"{agentInstallNamespace: agents, proxyConfig: {caBundle: UEVN}}",
	))
	require.EqualError(t, err, "AddOnTemplate hello-1: spec.agentSpec.workload.manifests[0] (ConfigMap one/hello-proxy-ca): metadata.name: "+
		"is the name of the object that the hub makes for the CA bundle of the proxy; use another name")
}

func TestTwoManifestsThatAreOneObjectWithoutAMove(t *testing.T) {
	const one = `{apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: one}, data: {a: b}}`
	require.Len(t, rendered(t, given(t, one, one)).Manifests, 1)
	_, err := template.Render(given(t, one, strings.Replace(one, "a: b", "a: c", 1)))
	require.ErrorContains(t, err, "that of spec.agentSpec.workload.manifests[0], with another content")
}

func TestManifestConfigsFollowTheirManifests(t *testing.T) {
	in := given(t, deployment)
	require.NoError(t, yaml.UnmarshalStrict([]byte(`
- resourceIdentifier: {group: apps, resource: deployments, name: "agent-{{CLUSTER_NAME}}", namespace: web}
  feedbackRules: [{type: WellKnownStatus}]
- resourceIdentifier: {resource: namespaces, name: web}
  updateStrategy: {type: ServerSideApply}
- resourceIdentifier: {group: example.com, resource: clusterthings, name: x}
`), &in.Template.Spec.AgentSpec.ManifestConfigs))
	names := func(in template.Input) (out []string) {
		for i, c := range rendered(t, in).ManifestConfigs {
			id := c.ResourceIdentifier
			require.Equal(t, in.Template.Spec.AgentSpec.ManifestConfigs[i].FeedbackRules, c.FeedbackRules)
			require.Equal(t, in.Template.Spec.AgentSpec.ManifestConfigs[i].UpdateStrategy, c.UpdateStrategy)
			out = append(out, id.Resource+" "+id.Namespace+"/"+id.Name)
		}
		return out
	}
	require.Equal(t, []string{"deployments web/agent-cluster1", "namespaces /web", "clusterthings /x"}, names(in))
	require.Equal(
		t, []string{"deployments agents/agent-cluster1", "namespaces /agents", "clusterthings /x"},
		names(configured(t, in, "agentInstallNamespace: agents")),
	)

	in.Template.Spec.AgentSpec.ManifestConfigs[2].ResourceIdentifier.Name = "x{{NONE}}"
	require.Equal(t, []string{`AddOnTemplate hello-1: spec.agentSpec.manifestConfigs[2].resourceIdentifier: ` +
		`"{{NONE}}" has no value and is replaced by nothing; ` +
		"set it in the customizedVariables of an AddOnDeploymentConfig"}, rendered(t, in).Warnings)
}
