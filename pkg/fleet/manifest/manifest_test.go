// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/internal/manifest"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
)

const head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: shop}\n"

func read(text string) ([]string, error) {
	objects, err := Read([]Source{{Name: "f.yaml", Data: []byte(text)}}, "")
	var out []string
	for _, u := range objects {
		out = append(out, u.GetKind()+" "+u.GetName())
	}
	return out, err
}

func TestHostileYAMLIsRefusedBeforeItGrows(t *testing.T) {
	long := strings.Repeat("y", 100<<10)
	names := "data:\n  x: &x " + long + "\n"
	for i := range 3000 {
		names += fmt.Sprintf("  k%d: *x\n", i)
	}
	laughs := "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
	for i := 1; i < 9; i++ {
		laughs += fmt.Sprintf("a%d: &a%d [%s]\n", i, i,
			strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 10), ","))
	}
	for name, tc := range map[string]struct{ text, want string }{
		"one long text, named often": {head + names, "aliases make it larger than 4 MiB"},
		"lists of lists of lists":    {head + laughs, "aliases make it larger than 4 MiB"},
		"a list that holds itself":   {head + "x: &x [*x]\n", "contain themselves"},
		"an alias of nothing":        {head + "x: *y\n", "unknown anchor"},
		"nesting that no cluster takes": {
			head + "x: " + strings.Repeat("[", manifest.MaxDepth) + strings.Repeat("]", manifest.MaxDepth),
			"document 1 nests deeper than 200 levels",
		},
		"nesting without end": {
			head + "x: " + strings.Repeat("[", 100000) + strings.Repeat("]", 100000),
			"exceeded max depth",
		},
		"the same key twice":     {head + "data: {a: 1, a: 2}\n", `key "a" already set`},
		"a document behind dots": {head + "...\n" + head, "a second document begins in it"},
		"a document on its mark's line": {
			head + "--- {apiVersion: v1, kind: Namespace, metadata: {name: b}}\n",
			"invalid Yaml document separator",
		},
		"a namespace that is false": {
			strings.Replace(head, "shop", "n", 1),
			"metadata.namespace of ConfigMap is false, which is not a string",
		},
		"a label that is true": {strings.Replace(head, "shop", "shop, labels: {on: y}", 1), "must be a string"},
		"a name for a path":    {strings.Replace(head, "name: a", "name: ../a", 1), "cannot be a name"},
		"a list in a list": {
			"apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: List, items: []}\n",
			"has no metadata.name",
		},
		"a list with something else": {"apiVersion: v1\nkind: List\nitems: [1]\n", "the list cannot be read"},
		"a document of more than 4 MiB": {
			head + "x: " + strings.Repeat("y", maxDocument),
			"document 1 is larger than 4194304 bytes",
		},
		"keys that are no text":          {head + "data: {[a]: b}\n", "is not YAML"},
		"a number that JSON cannot hold": {head + "x: .inf\n", "is not YAML"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := read(tc.text)
			var said *fleet.Error
			require.ErrorAs(t, err, &said)
			require.Equal(t, fleet.Usage, said.Kind)
			require.Contains(t, said.Message+": "+said.Cause, tc.want)
			require.NotEmpty(t, said.Fix)
			require.Less(t, len(said.Error()), 1024)
		})
	}
}

func TestUsualYAMLIsReadWhole(t *testing.T) {
	second := strings.Replace(head, "name: a", "name: b", 1)
	for name, tc := range map[string]struct {
		text string
		want []string
	}{
		"aliases that stay small": {head + "data: {a: &x hello, b: *x}\n", []string{"ConfigMap a"}},
		"a star that is no alias": {head + "data: {a: '*', b: \"2*3\"}\n", []string{"ConfigMap a"}},
		"marks with comments": {
			"# first\n--- # one\n" + head + "--- # two\n" + second + "---\n# nothing\n",
			[]string{"ConfigMap a", "ConfigMap b"},
		},
		"marks inside of a text": {head + "data:\n  a: |\n    ---\n    ...\n    *\n", []string{"ConfigMap a"}},
		"dots at the end":        {head + "...\n", []string{"ConfigMap a"}},
		"a list": {
			"apiVersion: v1\nkind: List\nitems:\n- " + strings.ReplaceAll(strings.TrimSpace(head), "\n", "\n  ") + "\n",
			[]string{"ConfigMap a"},
		},
		"a typed list": {
			"apiVersion: v1\nkind: ConfigMapList\nitems:\n- " + strings.ReplaceAll(strings.TrimSpace(head), "\n", "\n  ") + "\n",
			[]string{"ConfigMap a"},
		},
		"JSON": {
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"shop"}}`,
			[]string{"ConfigMap a"},
		},
		"line ends of another system": {
			strings.ReplaceAll(head+"---\n"+second, "\n", "\r\n"),
			[]string{"ConfigMap a", "ConfigMap b"},
		},
		"a byte order mark": {"\ufeff" + head, []string{"ConfigMap a"}},
		"the deepest that is accepted": {
			head + "x: " + strings.Repeat("[", manifest.MaxDepth-1) + strings.Repeat("]", manifest.MaxDepth-1),
			[]string{"ConfigMap a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := read(tc.text)
			require.NoError(t, err)
			require.Equal(t, tc.want, got)
		})
	}
}

// What is accepted is what a hub accepts, and everything refused is refused with a fix, in
// bounded size.
func FuzzReadManifests(f *testing.F) {
	for _, seed := range []string{
		head, head + "---\n" + head, head + "data: {a: &x [1], b: *x}", "apiVersion: v1\nkind: List\nitems: [1]",
		"x: &x [*x]", "- a", "a: b\n...\nc: d",
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"shop"}}`, "\x00", "---\n---\n",
		"? [a]\n: b", "a: !!binary x", "&a *a", "<<: *a",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		objects, err := Read([]Source{{Name: "f", Data: text}}, "shop")
		if err != nil {
			var said *fleet.Error
			require.True(t, errors.As(err, &said), "%T", err)
			require.NotEmpty(t, said.Fix)
			return
		}
		require.NotEmpty(t, objects)
		sum := 0
		for _, u := range objects {
			require.NotEmpty(t, u.GetName())
			require.NotEmpty(t, u.GetKind())
			raw, err := json.Marshal(u.Object)
			require.NoError(t, err)
			require.LessOrEqual(t, manifest.Depth(raw), manifest.MaxDepth+2)
			sum += len(raw)
		}
		require.LessOrEqual(t, sum, maxWork)
	})
}
