// SPDX-License-Identifier: Apache-2.0

package feedback

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/jsonpath"

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

var seeds = []string{
	".status.n", "$.a", ".a[0].b", ".a[-1:]", ".a[0:2:1]", `.a[?(@.k=="x")].v`, `.a[?(@.v>=1)]`, ".a[?(@.v)]", "..k", "...*", ".*.*", ".a[0,1].v",
	`.m['x\.y']`, ".a[*].v", "@", "'text'", "1", "-1.5", "true", "range .a[*]", ".a}{.b", ".a[?(@.v==@.v)].k", "..", ".a[1:1]",
}

const fuzzed = `{"apiVersion":"v1","kind":"Thing","a":[{"k":"x","v":1},{"k":"y","v":2.5},{"k":"z","v":null}],"m":{"x.y":true,"e":{},"l":[]},"status":{"n":3}}`

func fuzzedObject(t testing.TB) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	require.NoError(t, u.UnmarshalJSON([]byte(fuzzed)))
	return u
}

// FuzzPathsFindWhatKubectlFinds compares with the evaluation of client-go, which visits
// maps in no order and treats strings as lists of bytes.
func FuzzPathsFindWhatKubectlFinds(f *testing.F) {
	for _, s := range seeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, path string) {
		u := fuzzedObject(t)
		ours, err := newReader(u, Options{}).evaluatePath(path)
		if err != nil {
			return
		}
		parsed, err := jsonpath.Parse("path", "{"+path+"}")
		require.NoError(t, err)
		if !plain(parsed.Root.Nodes[0].(*jsonpath.ListNode)) {
			return
		}
		theirs := jsonpath.New("path").AllowMissingKeys(true)
		require.NoError(t, theirs.Parse("{"+path+"}"))
		results, err := theirs.FindResults(u.Object)
		require.NoError(t, err)
		require.Len(t, results, 1)
		require.Len(t, ours, len(results[0]))
		for i, v := range results[0] {
			want, err := json.Marshal(v.Interface())
			require.NoError(t, err)
			have, err := json.Marshal(ours[i])
			require.NoError(t, err)
			require.Equal(t, string(want), string(have))
		}
	})
}

// plain reports whether an expression neither searches nor filters.
func plain(list *jsonpath.ListNode) bool {
	for _, node := range list.Nodes {
		switch node := node.(type) {
		case *jsonpath.RecursiveNode, *jsonpath.WildcardNode, *jsonpath.FilterNode:
			return false
		case *jsonpath.UnionNode:
			if slices.ContainsFunc(node.Nodes, func(l *jsonpath.ListNode) bool { return !plain(l) }) {
				return false
			}
		}
	}
	return true
}

// FuzzEvaluate checks what every caller relies on, for any path and object.
func FuzzEvaluate(f *testing.F) {
	for _, s := range seeds {
		f.Add(s, "", fuzzed)
		f.Add(s, "v1", `{"apiVersion":"v1","kind":"Secret","data":{"a":"c2VjcmV0"}}`)
	}
	f.Fuzz(func(t *testing.T, path, version, object string) {
		u := &unstructured.Unstructured{}
		if u.UnmarshalJSON([]byte(object)) != nil {
			return
		}
		rules := []workv1.FeedbackRule{
			{Type: workv1.FeedbackRuleTypeWellKnownStatus},
			{
				Type: workv1.FeedbackRuleTypeJSONPaths,
				JSONPaths: []workv1.JSONPath{{
					Name:    "a",
					Path:    path,
					Version: version,
				}, {
					Name: "b",
					Path: path,
				}, {
					Name: "b",
					Path: ".kind",
				}},
			},
		}
		for _, o := range []Options{{}, {RawJSON: true}, {RawJSON: true, MaxRawLength: 8, MaxBytes: 16}} {
			values, err := Evaluate(u, rules, o)
			again, errAgain := Evaluate(u, rules, o)
			require.Equal(t, values, again)
			require.Equal(t, err == nil, errAgain == nil)
			var names []string
			for _, v := range values {
				require.NotContains(t, names, v.Name)
				names = append(names, v.Name)
				held := v.FieldValue
				count := 0
				for _, there := range []bool{held.Integer != nil, held.String != nil, held.Boolean != nil, held.JSONRaw != nil} {
					if there {
						count++
					}
				}
				require.Equal(t, 1, count)
				if held.JSONRaw != nil {
					require.True(t, o.RawJSON)
					require.True(t, json.Valid([]byte(*held.JSONRaw)))
					require.LessOrEqual(t, len(*held.JSONRaw), MaxRawLength)
				}
			}
			require.True(t, err == nil || utf8.ValidString(err.Error()))
		}
	})
}

func BenchmarkHostilePath(b *testing.B) {
	u := &unstructured.Unstructured{Object: map[string]any{"kind": "Deep"}}
	for range 100 {
		u.Object = map[string]any{"a": u.Object, "b": []any{"x", u.Object}, "c": int64(1)}
	}
	rule := workv1.FeedbackRule{Type: workv1.FeedbackRuleTypeJSONPaths}
	for range 20 {
		rule.JSONPaths = append(rule.JSONPaths, workv1.JSONPath{Name: "a", Path: strings.Repeat("...*", 250)})
	}
	rules := []workv1.FeedbackRule{rule}
	for b.Loop() {
		if _, err := Evaluate(u, rules, Options{}); err == nil {
			b.Fatal("it was not given up")
		}
	}
}
