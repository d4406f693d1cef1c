// SPDX-License-Identifier: Apache-2.0

package gotemplate

import (
	"context"
	"errors"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit/values"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

const head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web, namespace: x}\n"

func instance() addonkit.Instance {
	return addonkit.Instance{
		Cluster: &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1"}},
		AddOn:   &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "c1", Name: "hello"}},
	}
}

// folder is an add-on of files, below the folder manifests.
func folder(files map[string]string, given map[string]any) Config {
	c := Config{Options: addonkit.Options{Name: "hello"}, Files: fstest.MapFS{}, Dir: "manifests", Values: []values.Func{values.Fixed(given)}}
	for name, text := range files {
		c.Files.(fstest.MapFS)["manifests/"+name] = &fstest.MapFile{Data: []byte(text)}
	}
	return c
}

// render renders them for the instance.
func render(t *testing.T, c Config) ([]map[string]any, error) {
	t.Helper()
	a, err := New(c)
	require.NoError(t, err)
	objects, err := a.Manifests(t.Context(), instance())
	var out []map[string]any
	for _, o := range objects {
		out = append(out, o.(*unstructured.Unstructured).Object)
	}
	return out, err
}

func TestManifestsOfAFolder(t *testing.T) {
	c := folder(map[string]string{
		"b.yaml": head + "data: {from: b, cluster: {{ .ClusterName }}, namespace: {{ .AddonInstallNamespace }}, " +
			"mode: {{ .InstallMode }}, secret: {{ .HubKubeConfigSecret }}}\n",
		"a/deep.json": `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":{{ json .Name }}}}`,
		"c.yaml":      "{{ if .Wanted }}" + head + "{{ end }}\n---\n# nothing\n---\n" + head + "data: {from: c}\n",
		"notes.txt":   "{{ no template",
	}, map[string]any{"Name": "a b", "Wanted": false, "ClusterName": "another"})
	c.Namespace = func(context.Context, addonkit.Instance) (string, error) { return "there", nil }
	got, err := render(t, c)
	require.NoError(t, err)
	require.Len(t, got, 3)
	require.Equal(t, map[string]any{"name": "a b"}, got[0]["metadata"])
	require.Equal(t, map[string]any{"from": "b", "cluster": "c1", "namespace": "there", "mode": "Default", "secret": "hello-hub-kubeconfig"}, got[1]["data"])
	require.Equal(t, map[string]any{"from": "c"}, got[2]["data"])
}

func TestTheNamespaceIsThatOfTheCredentials(t *testing.T) {
	c := folder(map[string]string{"a.yaml": head + "data: {at: {{ .AddonInstallNamespace }}}"}, nil)
	got, err := render(t, c)
	require.NoError(t, err)
	require.Equal(t, map[string]any{"at": addonv1alpha1.DefaultInstallNamespace}, got[0]["data"])

	a, err := New(c)
	require.NoError(t, err)
	require.Equal(t, "hello", a.Options().Name)
	own, err := a.InstallNamespace(t.Context(), instance())
	require.NoError(t, err)
	require.Empty(t, own, "it is left to the instance")

	c.Namespace = func(context.Context, addonkit.Instance) (string, error) { return "", errors.New("no configuration") }
	_, err = render(t, c)
	require.EqualError(t, err, "no configuration")
}

func TestHostedModeIsTold(t *testing.T) {
	c := folder(map[string]string{"a.yaml": head + "data: {mode: {{ .InstallMode }}}"}, nil)
	c.Hosted = addonkit.HostedByAnnotation{}
	a, err := New(c)
	require.NoError(t, err)
	i := instance()
	i.AddOn.Annotations = map[string]string{addonv1alpha1.AnnotationHostingClusterName: "h1"}
	got, err := a.Manifests(t.Context(), i)
	require.NoError(t, err)
	require.Equal(t, map[string]any{"mode": "Hosted"}, got[0].(*unstructured.Unstructured).Object["data"])
}

func TestWhatIsWrongWithAFolderIsToldAtOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Config)
		files  map[string]string
		want   string
	}{
		"no name": {
			change: func(c *Config) { c.Options.Name = "" },
			want:   "options of the add-on: name: must be set",
		},
		"no files": {
			change: func(c *Config) { c.Files = nil },
			want:   "files: must be set; embed the folder of the manifests",
		},
		"another folder":   {change: func(c *Config) { c.Dir = "gone" }, want: "reading the templates of the add-on: "},
		"a folder outside": {change: func(c *Config) { c.Dir = "../x" }, want: "reading the templates of the add-on: "},
		"an empty folder": {
			files: map[string]string{"a.txt": "x"},
			want:  "folder manifests has no file that ends in [.yaml .yml .json]; put the manifests there",
		},
		"an open action": {
			files: map[string]string{"a/b.yaml": "x: 1\ny: {{ .A"},
			want:  "template: a/b.yaml:2: unclosed action",
		},
		"an unknown function": {
			files: map[string]string{"a.yaml": "{{ lookup .A }}"},
			want:  `template: a.yaml:1: function "lookup" not defined`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := folder(tc.files, nil)
			if tc.change != nil {
				tc.change(&c)
			}
			_, err := New(c)
			require.ErrorContains(t, err, tc.want)
		})
	}
}

func TestWhatIsWrongWithATemplateNamesThePlace(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"a value that is missing": {
			"x: {{ .Gone }}",
			`template: a.yaml:1:6: executing "a.yaml" at <.Gone>: map has no entry for key "Gone"`,
		},
		"one in a map":         {"x: {{ .Map.Gone }}", `map has no entry for key "Gone"`},
		"a value that is null": {"x: {{ .Null }}", "it has no value; test it with if, or give it a default"},
		"a quoted one":         {"x: {{ quote .Null }}", "it has no value"},
		"a map as it is":       {"x: {{ .Map }}", "it is not a single value; print it with json"},
		"a map in quotes":      {"x: {{ quote .Map }}", "it is not a single value; print it with json"},
		"no YAML": {
			"x: [",
			"template a.yaml: object 1 is not valid YAML after rendering; check its indentation, and print values with json or quote",
		},
		"a key twice":                {head + "data: {}\ndata: {}", "object 1 is not valid YAML"},
		"no object of Kubernetes":    {head + "---\napiVersion: v1\nkind: Secret\n", "template a.yaml: object 2: metadata"},
		"a file that does not exist": {"x: {{ load \"b\" }}", "open b: file does not exist"},
		"a broken expression":        {"x: {{ regexMatch \"(\" .Name }}", "error parsing regexp"},
		"a line of YAML in a block": {
			"{{ indent 2 .Line }}",
			"its text has a control character, which no block can hold; print it with json",
		},
		"too much space": {"{{ indent 1000 .Name }}", "indent takes 0 to 100 spaces"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := render(
				t,
				folder(map[string]string{"a.yaml": tc.text}, map[string]any{"Name": "x", "Line": "a\u0085evil: yes", "Null": nil, "Map": map[string]any{}}),
			)
			require.ErrorContains(t, err, tc.want)
		})
	}
}

func TestNoValueChangesTheShapeOfAManifest(t *testing.T) {
	evil := map[string]string{
		"a\nevil: yes": "a line break or control character", "a\u2028b": "a line break or control character", "a\u0085b": "a line break or control character",
		`a"b`: "the character \"", "a'b": "the character '", `a\b`: `the character \`, "a, evil": "the character ,",
		"{evil": "the character {", "a]": "the character ]", "a #b": "the character #",
		"a: b": "a colon before a space", "a:": "a colon before a space", " a": "a space at its start or end", "a ": "a space at its start or end",
		"- a": "the character - at its start", "-": "the character - at its start", "? a": "the character ? at its start", "&a": "the character & at its start",
		"*a": "the character * at its start", "!a": "the character ! at its start", "|": "the character | at its start",
		"--- a": "the marker --- at its start", "...": "the marker ... at its start",
	}
	for text, want := range evil {
		t.Run(text, func(t *testing.T) {
			given := map[string]any{"V": text, "On": true, "List": []any{text}}
			for _, template := range []string{
				"{{ .V }}", "{{ .V | printf \"%s\" }}", "{{ if .On }}{{ .V }}{{ end }}", "{{ with .V }}{{ . }}{{ end }}",
				"{{ range .List }}{{ . }}{{ end }}", "{{ if not .On }}{{ else }}{{ .V }}{{ end }}", "{{ define \"x\" }}{{ .V }}{{ end }}{{ template \"x\" . }}",
				"{{ $v := .V }}{{ $v }}",
			} {
				_, err := render(t, folder(map[string]string{"a.yaml": head + "data: {v: " + template + "}"}, given))
				require.ErrorContains(t, err, "its text has "+want+", which would change the YAML around it; print it with json or quote", template)
			}
			got, err := render(t, folder(map[string]string{
				"a.yaml": head + "data: {json: {{ json .V }}, quote: {{ .V | quote }}, list: {{ json .List }}}\n",
			}, given))
			require.NoError(t, err)
			require.Equal(t, map[string]any{"json": text, "quote": text, "list": []any{text}}, got[0]["data"])
		})
	}
}

// FuzzNoTextChangesTheShape: wherever a text is printed, what comes of it is one value,
// or nothing at all.
func FuzzNoTextChangesTheShape(f *testing.F) {
	for _, seed := range []string{
		"",
		"web",
		"true",
		"1",
		"~",
		"null",
		"a:b",
		"a:",
		"a: b",
		"x#y",
		"x #y",
		"<<",
		"=",
		"--- a",
		"a,b",
		"[",
		"'",
		"\"",
		"\\",
		"\n",
		"\u0085",
		"\ufeff",
		"\t",
		"|",
		"- a",
		"0x1",
		"2001-01-01",
		"\xff",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for name, place := range map[string]string{
			"plain":  "v: {{ .V }}",
			"part":   "v: a{{ .V }}b",
			"double": `v: "{{ .V }}"`,
			"single": `v: '{{ .V }}'`,
			"flow":   "v: {one: {{ .V }}}",
			"list":   "v: [a{{ .V }}]",
			"json":   "v: {{ json .V }}", "quote": "v: {{ quote .V }}",
		} {
			a, err := New(folder(map[string]string{"a.yaml": head + "data:\n  " + place + "\n  end: there\n"}, map[string]any{"V": text}))
			require.NoError(t, err)
			objects, err := a.Manifests(t.Context(), instance())
			if err != nil {
				continue
			}
			require.Len(t, objects, 1, name)
			data := objects[0].(*unstructured.Unstructured).Object["data"].(map[string]any)
			require.Len(t, data, 2, name)
			require.Equal(t, "there", data["end"], name)
			switch v := data["v"].(type) {
			case map[string]any:
				require.Equal(t, "flow", name)
				require.Len(t, v, 1)
				require.Contains(t, v, "one")
			case []any:
				require.Equal(t, "list", name)
				require.Len(t, v, 1)
			}
		}
	})
}

func TestTextsThatMayStandAsTheyAre(t *testing.T) {
	for _, text := range []string{"", "web", "quay.io/a/web:v1@sha256:ab", "http://proxy.local:3128", "a-b_c", "two words", "a@b", "50%", "--flag=x"} {
		got, err := render(
			t,
			folder(map[string]string{"a.yaml": head + "data: {v: \"{{ .V }}\", num: {{ .N }}, bool: {{ .B }}}"}, map[string]any{"V": text, "N": int64(2), "B": true}),
		)
		require.NoError(t, err, text)
		require.Equal(t, map[string]any{"v": text, "num": int64(2), "bool": true}, got[0]["data"])
	}
}

func TestFunctions(t *testing.T) {
	files := map[string]string{
		"note.txt": "one\ntwo",
		"a.yaml": head + `data:
  base64: {{ base64 .Name }}
  load: |
{{ load "note.txt" | indent 4 }}
  lines: |
{{ indent 4 .Lines }}
  match: {{ regexMatch "^w.b$" .Name }}
  quote: {{ quote .Number }}
  one: {{ json (resources .ResourceRequirements "deployments:web:a") }}
  other: {{ json (resources .ResourceRequirements "jobs:web:a") }}
`,
	}
	got, err := render(t, folder(files, map[string]any{"Name": "web", "Lines": "a\r\nb: c", "Number": 2, values.ResourceRequirements: []any{
		map[string]any{
			values.ContainerIDRegex: "^[^:]+:(?:web):(?:.+)$",
			values.Resources:        map[string]any{"limits": map[string]any{"memory": "1Gi"}},
		},
		map[string]any{
			values.ContainerIDRegex: "^deployments:(?:web):(?:a)$",
			values.Resources:        map[string]any{"limits": map[string]any{"memory": "2Gi"}},
		},
		map[string]any{values.ContainerIDRegex: "^deployments:(?:we):(?:a)$", values.Resources: map[string]any{}},
	}}))
	require.NoError(t, err)
	require.Equal(t, map[string]any{
		"base64": "d2Vi", "load": "one\ntwo\n", "lines": "a\nb: c\n", "match": true, "quote": "2",
		"one": map[string]any{
			"limits": map[string]any{"memory": "2Gi"},
		}, "other": map[string]any{
			"limits": map[string]any{"memory": "1Gi"},
		},
	}, got[0]["data"])
}

// TestAPullSecretComesByTheAnnotationOfValues, for one cluster whose images are private;
// the others have the author's default.
func TestAPullSecretComesByTheAnnotationOfValues(t *testing.T) {
	c := folder(map[string]string{"a.yaml": `apiVersion: v1
kind: ServiceAccount
metadata: {name: agent, namespace: x}
{{- with .PullSecret }}
imagePullSecrets: [{name: {{ quote . }}}]
{{- end }}
`}, map[string]any{"PullSecret": ""})
	c.Values = append(c.Values, values.Annotation)
	a, err := New(c)
	require.NoError(t, err)
	i := instance()
	for annotation, want := range map[string]any{
		"": nil, `{"PullSecret":"private"}`: []any{
			map[string]any{"name": "private"},
		}, `{"PullSecret":"a\"}, {b: c"}`: []any{
			map[string]any{"name": `a"}, {b: c`},
		},
	} {
		i.AddOn.Annotations = map[string]string{addonv1alpha1.AnnotationValues: annotation}
		objects, err := a.Manifests(t.Context(), i)
		require.NoError(t, err)
		require.Equal(t, want, objects[0].(*unstructured.Unstructured).Object["imagePullSecrets"])
	}
}
