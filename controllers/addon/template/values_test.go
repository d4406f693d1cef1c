// SPDX-License-Identifier: Apache-2.0

package template_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/addon/template"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
)

// configMap returns a manifest that contains one text.
func configMap(value string) string {
	raw, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return `{apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: web}, data: {"text": ` + string(raw) + `}}`
}

func TestVariablesAreReplacedByTheirExactName(t *testing.T) {
	for name, tc := range map[string]struct {
		text, config string
		registered   bool
		want         string
		warnings     []string
	}{
		"the cluster": {text: "a-{{CLUSTER_NAME}}-b{{CLUSTER_NAME}}", want: "a-cluster1-bcluster1"},
		"a variable of the configuration": {
			text:   "{{LEVEL}}",
			config: "customizedVariables: [{name: LEVEL, value: high}]",
			want:   "high",
		},
		"the hub's kubeconfig where the template has registrations": {
			text:       "{{HUB_KUBECONFIG}}",
			registered: true,
			want:       "/managed/hub-kubeconfig/kubeconfig",
		},
		"the hub's kubeconfig, by the configuration": {
			text: "{{HUB_KUBECONFIG}}", registered: true,
			config: "customizedVariables: [{name: HUB_KUBECONFIG, value: /elsewhere}]", want: "/elsewhere",
		},
		"no kubeconfig without registrations": {
			text: "a{{HUB_KUBECONFIG}}",
			want: "a",
			warnings: []string{
				`"{{HUB_KUBECONFIG}}" has no value and is replaced by nothing; set it in the customizedVariables of an AddOnDeploymentConfig`,
			},
		},
		"the install namespace of the configuration": {
			text:   "{{INSTALL_NAMESPACE}}",
			config: "agentInstallNamespace: agents",
			want:   "agents",
		},
		"no install namespace without one": {
			text:   "a{{INSTALL_NAMESPACE}}",
			config: `agentInstallNamespace: ""`,
			want:   "a",
			warnings: []string{
				`"{{INSTALL_NAMESPACE}}" has no value and is replaced by nothing; set the agentInstallNamespace of an AddOnDeploymentConfig`,
			},
		},
		"what the hub knows itself wins": {
			text:   "{{CLUSTER_NAME}}{{INSTALL_NAMESPACE}}",
			config: "{agentInstallNamespace: agents, customizedVariables: [{name: CLUSTER_NAME, value: x}, {name: INSTALL_NAMESPACE, value: y}]}",
			want:   "cluster1agents",
			warnings: []string{
				"spec.customizedVariables[CLUSTER_NAME]: the hub sets this variable itself; remove it",
				"spec.customizedVariables[INSTALL_NAMESPACE]: the hub sets this variable itself; remove it",
			},
		},
		"nobody has said it": {text: "a{{NONE}}b{{NONE}}", want: "ab", warnings: []string{
			`spec.agentSpec.workload.manifests[0] (ConfigMap web/x): "{{NONE}}" has no value`,
		}},
		"spaces inside the braces": {
			text: "a{{ CLUSTER_NAME }}",
			want: "a",
			warnings: []string{
				`"{{ CLUSTER_NAME }}" has no value and is replaced by nothing; write {{CLUSTER_NAME}}, without spaces`,
			},
		},
		"another case": {
			text:     "{{cluster_name}}",
			want:     "",
			warnings: []string{`"{{cluster_name}}" has no value`},
		},
		"a function": {
			text:     "{{upper CLUSTER_NAME}}",
			want:     "",
			warnings: []string{`"{{upper CLUSTER_NAME}}" has no value`},
		},
		"single braces":            {text: "{CLUSTER_NAME}", want: "{CLUSTER_NAME}"},
		"braces that do not close": {text: "a{{CLUSTER_NAME}", want: "a{{CLUSTER_NAME}"},
	} {
		t.Run(name, func(t *testing.T) {
			in := given(t, configMap(tc.text))
			if tc.registered {
				in = registered(t, in, kubeClient)
			}
			if tc.config != "" {
				in = configured(t, in, tc.config)
			}
			out := rendered(t, in)
			require.Equal(t, tc.want, at(t, out.Manifests[0], "data", "text"))
			require.Len(t, out.Warnings, len(tc.warnings))
			for i, w := range tc.warnings {
				require.Contains(t, out.Warnings[i], w)
			}
		})
	}
}

// hostile lists values that would break out of a text in JSON, YAML or a template.
var hostile = []string{
	`"`, `\`, `\"`, "line\nline", "\r\n\t", "\x00\x01", `","kind":"Secret","x":"`, `"}}, {"a`, "{{CLUSTER_NAME}}", "{{A}}",
	"}}", "<script>&", "\u2028", "日本",
	"a: b\n- c", "$(CLUSTER_NAME)", strings.Repeat("x", 1024),
}

func TestAValueCannotBreakOutOfItsText(t *testing.T) {
	for _, value := range hostile {
		in := given(
			t, configMap("<{{A}}>"),
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: other, namespace: web,
				annotations: {"k-{{CLUSTER_NAME}}": "{{A}}"}}, data: {"{{CLUSTER_NAME}}": "{{A}}{{B}}"}}`,
		)
		in = configured(t, in, "{}")
		in.Configs[0].Spec.CustomizedVariables = []addonv1alpha1.CustomizedVariable{{
			Name:  "A",
			Value: value,
		}, {
			Name:  "B",
			Value: "b",
		}}
		out := rendered(t, in)
		require.Len(t, out.Manifests, 2, "%q", value)
		require.Empty(t, out.Warnings, "%q", value)
		require.Equal(t, map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{
				"name":      "x",
				"namespace": "web",
			}, "data": map[string]any{
				"text": "<" + value + ">",
			},
		}, out.Manifests[0].Object, "%q", value)
		require.Equal(t, value, at(t, out.Manifests[1], "metadata", "annotations", "k-cluster1"))
		require.Equal(t, value+"b", at(t, out.Manifests[1], "data", "cluster1"))
	}
}

func TestValuesCannotMakeAManifestGrowWithoutEnd(t *testing.T) {
	in := configured(t, given(t, configMap(strings.Repeat("{{A}}", 2000))), "{}")
	in.Configs[0].Spec.CustomizedVariables = []addonv1alpha1.CustomizedVariable{
		{Name: "A", Value: strings.Repeat("x", 1024)},
	}
	_, err := template.Render(in)
	require.EqualError(
		t, err,
		"AddOnTemplate hello-1: spec.agentSpec.workload.manifests[0] (ConfigMap web/x): "+
			"with its variables replaced it takes more than the limit of 1048576 bytes; use shorter values",
	)
}

func TestOnlyTextsAreReplaced(t *testing.T) {
	in := given(t, `
apiVersion: example.com/v1
kind: Thing
metadata: {name: x}
spec: {number: 9007199254740993, on-off: true, nothing: null, list: ["{{CLUSTER_NAME}}", 1.5, {deep: "{{CLUSTER_NAME}}"}]}
`)
	require.Equal(t, map[string]any{
		"number": int64(9007199254740993), "on-off": true, "nothing": nil,
		"list": []any{"cluster1", 1.5, map[string]any{"deep": "cluster1"}},
	}, at(t, rendered(t, in).Manifests[0], "spec"))
}

// FuzzSubstitution: whatever text and value are, the manifest stays the same object, and a
// value appears in it unchanged.
func FuzzSubstitution(f *testing.F) {
	for _, value := range hostile {
		f.Add("a{{A}}b", value)
		f.Add(value, "v")
	}
	f.Fuzz(func(t *testing.T, written, value string) {
		raw, err := json.Marshal(written)
		require.NoError(t, err)
		var read string
		require.NoError(t, json.Unmarshal(raw, &read)) // JSON contains no invalid characters
		in := configured(
			t, given(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: web}, data: {}}`), "{}",
		)
		in.Template.Spec.AgentSpec.Workload.Manifests[0].Raw = []byte(
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","namespace":"web"},"data":{"text":` + string(raw) + `,"other":"o"}}`,
		)
		in.Configs[0].Spec.CustomizedVariables = []addonv1alpha1.CustomizedVariable{
			{Name: "A", Value: strings.ToValidUTF8(value, "?")},
		}
		out, err := template.Render(in)
		if err != nil {
			var refused *template.Error
			require.ErrorAs(t, err, &refused)
			return
		}
		require.Len(t, out.Manifests, 1)
		data := at(t, out.Manifests[0], "data").(map[string]any)
		require.Len(t, data, 2)
		require.Equal(t, "o", data["other"])
		if !strings.Contains(read, "{{") {
			require.Equal(t, read, data["text"])
		}
		if read == "{{A}}" {
			require.Equal(t, strings.ToValidUTF8(value, "?"), data["text"])
		}
	})
}
