// SPDX-License-Identifier: Apache-2.0

package ignore

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/json"

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

const sample = `{"apiVersion":"apps/v1","kind":"Deployment",
"metadata":{"name":"web","namespace":"shop","annotations":{"a.b/c":"1","d~e":"2"},"labels":{"l":"1"}},
	"spec":{"replicas":3,"paused":null,"containers":[
		{"name":"web","image":"web:1","env":[{"name":"A","value":"1"},{"name":"B","value":"2"}]},
		{"name":"side","image":"side:1","limits":{"cpu":"1","memory":"1Gi"}}],
	"list":[1,2.5,"x",null,true,[1],{"k":"v"}]}}`

func object(t testing.TB, raw string) map[string]any {
	t.Helper()
	var out map[string]any
	require.NoError(t, json.Unmarshal([]byte(raw), &out))
	return out
}

// left returns the sample without what an expression selects.
func left(t testing.TB, entry workv1.IgnoreField, raw string) (map[string]any, error) {
	t.Helper()
	f, err := Parse([]workv1.IgnoreField{entry})
	if err != nil {
		return nil, err
	}
	o := object(t, raw)
	found, err := (&evaluator{}).selected(f.present, o)
	if err != nil {
		return nil, err
	}
	return without(o, found).(map[string]any), nil
}

// gone returns what is missing, by the paths of the sample.
var gone = map[string]func(spec, metadata map[string]any){
	"nothing":    func(_, _ map[string]any) {},
	"replicas":   func(spec, _ map[string]any) { delete(spec, "replicas") },
	"paused":     func(spec, _ map[string]any) { delete(spec, "paused") },
	"containers": func(spec, _ map[string]any) { delete(spec, "containers") },
	"images": func(spec, _ map[string]any) {
		for _, c := range spec["containers"].([]any) {
			delete(c.(map[string]any), "image")
		}
	},
	"image 0": func(spec, _ map[string]any) { delete(spec["containers"].([]any)[0].(map[string]any), "image") },
	"value A": func(spec, _ map[string]any) {
		delete(spec["containers"].([]any)[0].(map[string]any)["env"].([]any)[0].(map[string]any), "value")
	},
	"env A": func(spec, _ map[string]any) {
		c := spec["containers"].([]any)[0].(map[string]any)
		c["env"] = c["env"].([]any)[1:]
	},
	"limits":      func(spec, _ map[string]any) { delete(spec["containers"].([]any)[1].(map[string]any), "limits") },
	"container 0": func(spec, _ map[string]any) { spec["containers"] = spec["containers"].([]any)[1:] },
	"container 1": func(spec, _ map[string]any) { spec["containers"] = spec["containers"].([]any)[:1] },
	"annotation":  func(_, m map[string]any) { delete(m["annotations"].(map[string]any), "a.b/c") },
	"tilde":       func(_, m map[string]any) { delete(m["annotations"].(map[string]any), "d~e") },
	"element 1":   func(spec, _ map[string]any) { l := spec["list"].([]any); spec["list"] = append(l[:1:1], l[2:]...) },
	"element 1-2": func(spec, _ map[string]any) { l := spec["list"].([]any); spec["list"] = append(l[:1:1], l[3:]...) },
	"last":        func(spec, _ map[string]any) { l := spec["list"].([]any); spec["list"] = l[:6] },
	"k":           func(spec, _ map[string]any) { spec["list"].([]any)[6] = map[string]any{} },
}

func check(t *testing.T, entry workv1.IgnoreField, want string) {
	t.Helper()
	require.Contains(t, gone, want)
	o := object(t, sample)
	gone[want](o["spec"].(map[string]any), o["metadata"].(map[string]any))
	got, err := left(t, entry, sample)
	require.NoError(t, err)
	require.Equal(t, o, got)
}

func TestWhatAJSONPathSelects(t *testing.T) {
	for path, want := range map[string]string{
		".spec.replicas":                                "replicas",
		"spec.replicas":                                 "replicas",
		"{.spec.replicas}":                              "replicas",
		"$.spec.replicas":                               "replicas",
		"$['spec'][\"replicas\"]":                       "replicas",
		".spec['replicas']":                             "replicas",
		".spec.paused":                                  "paused",
		`.metadata.annotations.a\.b/c`:                  "annotation",
		".metadata.annotations['a.b/c']":                "annotation",
		".spec.containers[0].image":                     "image 0",
		".spec.containers[-2].image":                    "image 0",
		".spec.containers[*].image":                     "images",
		".spec.containers[:].image":                     "images",
		".spec.containers[0:].image":                    "images",
		".spec.containers.*.image":                      "images",
		".spec.containers[0,1].image":                   "images",
		".spec..image":                                  "images",
		".spec.containers[?(@.name=='web')]":            "container 0",
		`.spec.containers[?(@.name == "side")]`:         "container 1",
		".spec.containers[?(@.limits)]":                 "container 1",
		".spec.containers[?(@['limits'].cpu>0)]":        "container 1",
		".spec.containers[0].env[?(@.name=='A')].value": "value A",
		".spec.list[1]":                                 "element 1",
		".spec.list[1:3]":                               "element 1-2",
		".spec.list[-1]":                                "last",
		".spec.list[?(@.k)].k":                          "k",
		".spec.list[99]":                                "nothing",
		".spec.missing.x[*].y":                          "nothing",
		".spec.replicas.x":                              "nothing",
		".spec.containers[?(@.name=='none')]":           "nothing",
	} {
		t.Run(path, func(t *testing.T) { check(t, workv1.IgnoreField{JSONPaths: []string{path}}, want) })
	}
}

func TestWhatAJSONPointerSelects(t *testing.T) {
	for pointer, want := range map[string]string{
		"/spec/replicas":               "replicas",
		"/metadata/annotations/a.b~1c": "annotation",
		"/metadata/annotations/d~0e":   "tilde",
		"/spec/containers/0":           "container 0",
		"/spec/containers/0/image":     "image 0",
		"/spec/containers/00/image":    "nothing",
		"/spec/containers/-":           "nothing",
		"/spec/containers/7/image":     "nothing",
		"/spec/missing/x":              "nothing",
		"/spec/replicas/x":             "nothing",
		"/":                            "nothing",
	} {
		t.Run(pointer, func(t *testing.T) { check(t, workv1.IgnoreField{JSONPointers: []string{pointer}}, want) })
	}
}

// paths of jq with what they select; gojq agrees, see TestJQIsThatOfGojq.
var jqPaths = map[string]string{
	".spec.replicas":                                       "replicas",
	`.["spec"].replicas`:                                   "replicas",
	`."spec"."replicas"`:                                   "replicas",
	".spec | .replicas":                                    "replicas",
	".spec.missing?.x?":                                    "nothing",
	".spec.replicas.x?":                                    "nothing",
	".spec.containers[0].image":                            "image 0",
	".spec.containers.[0].image":                           "image 0",
	".spec.containers[].image":                             "images",
	".spec.containers[] | .image":                          "images",
	"(.spec.containers[0], .spec.containers[1]) | .image":  "images",
	".spec.containers[0].image, .spec.containers[1].image": "images",
	`.spec.containers[] | select(.name == "web")`:          "container 0",
	`.spec.containers[] | select(.name != "web")`:          "container 1",
	`.spec.containers[] | select(.name == "web") | .env[] | select(.name == "A") | .value`: "value A",
	`.spec.containers[] | select(.name == "web") | .env[] | select(.name == "A")`:          "env A",
	`.spec.containers[] | select(.name | startswith("si")) | .limits`:                      "limits",
	`.spec.containers[] | select(.name | endswith("ide"))`:                                 "container 1",
	`.spec.containers[] | select(.name | test("^w.b$"))`:                                   "container 0",
	`.spec.containers[] | select(.name | contains("eb"))`:                                  "container 0",
	`.spec.containers[] | select(.name | IN("web", "other"))`:                              "container 0",
	`.spec.containers[] | select(has("limits"))`:                                           "container 1",
	`.spec.containers[] | select(has("limits") | not)`:                                     "container 0",
	`.spec.containers[] | select(.limits)`:                                                 "container 1",
	`.spec.containers[] | select(.env | length > 1)`:                                       "container 0",
	`.spec.containers[] | select(.env and .name == "web")`:                                 "container 0",

	`.spec.containers[] | select(.env // empty | any(.name == "A"))`:   "container 0",
	`.spec.containers[] | select((.env // empty) | all(.value < "3"))`: "container 0",
	`first(.spec.containers[]).image`:                                  "image 0",
	`.spec.containers | first | .image`:                                "image 0",
	`.spec.containers | last`:                                          "container 1",
	`.. | .image?`:                                                     "images",
	`recurse | select(type == "object" and has("image")) | .image`:     "images",
	`.spec.missing // .spec.replicas`:                                  "replicas",
	`.spec.list[] | select(. == 2.5)`:                                  "element 1",
	`.spec.list[-1]`:                                                   "last",
	`.spec.list[6].k`:                                                  "k",
	`.spec.list[] | .k?`:                                               "k",
	`empty`:                                                            "nothing",
	`.metadata.annotations["a.b/c"]`:                                   "annotation",
}

func TestWhatAJQPathSelects(t *testing.T) {
	for path, want := range jqPaths {
		if want == "" {
			continue
		}
		t.Run(path, func(t *testing.T) { check(t, workv1.IgnoreField{JQPathExpressions: []string{path}}, want) })
	}
}

func TestWhatCannotBeIgnoredIsSaid(t *testing.T) {
	for name, tc := range map[string]struct {
		entry workv1.IgnoreField
		want  string
	}{
		"no slash": {
			workv1.IgnoreField{JSONPointers: []string{"spec"}},
			`OnSpokePresent.jsonPointers[0] "spec": must begin with "/"; write it as in /spec/replicas`,
		},
		"a lone tilde":       {workv1.IgnoreField{JSONPointers: []string{"/a~b"}}, `must be followed by 0 or 1`},
		"everything":         {workv1.IgnoreField{JSONPointers: []string{""}}, `names the whole object; name a field`},
		"everything by path": {workv1.IgnoreField{JSONPaths: []string{"{.}"}}, `names the whole object`},
		"everything by jq":   {workv1.IgnoreField{JQPathExpressions: []string{"."}}, `names the whole object`},
		"the kind": {
			workv1.IgnoreField{JSONPointers: []string{"/kind"}},
			`names kind, which is always applied; name another field`,
		},
		"the name": {
			workv1.IgnoreField{JSONPaths: []string{"..name"}},
			`names metadata.name, which is always applied`,
		},
		"the metadata": {workv1.IgnoreField{JQPathExpressions: []string{".metadata"}}, `names metadata, which`},
		"one brace":    {workv1.IgnoreField{JSONPaths: []string{"{.spec"}}, `has only one of two braces`},
		"no name":      {workv1.IgnoreField{JSONPaths: []string{".spec..[0]."}}, `at character 12: a name is missing`},
		"a broken filter": {
			workv1.IgnoreField{JSONPaths: []string{".a[?(@.b=='c']"}},
			`at character 14: found "]" instead of ")"`,
		},
		"an open string": {workv1.IgnoreField{JSONPaths: []string{".a['b]"}}, `the string has no end`},
		"the change condition": {
			workv1.IgnoreField{Condition: "OnSpokeChange", JQPathExpressions: []string{".spec |"}},
			`OnSpokeChange.jqPathExpressions[0] ".spec |": at character 8: found the end instead of a path; correct the expression`,
		},
		"no condition": {workv1.IgnoreField{Condition: "Never"}, `must be OnSpokePresent or OnSpokeChange`},
		"a value": {
			workv1.IgnoreField{JQPathExpressions: []string{`"x"`}},
			`does not name a field of the object`,
		},
		"a comparison": {
			workv1.IgnoreField{JQPathExpressions: []string{`.spec == 1`}},
			`does not name a field of the object`,
		},
		"elements of a string": {
			workv1.IgnoreField{JQPathExpressions: []string{`.kind[]`}},
			`a string has no elements; correct the path`,
		},
		"a field of a string": {
			workv1.IgnoreField{JQPathExpressions: []string{`.kind.x`}},
			`a string has no field "x"; correct the path`,
		},
		"an index of a map": {
			workv1.IgnoreField{JQPathExpressions: []string{`.spec[0]`}},
			`an object has no element 0`,
		},
		"a dash in a name": {
			workv1.IgnoreField{JQPathExpressions: []string{`.spec.a-b`}},
			`found "-" instead of the end`,
		},
		"too long": {
			workv1.IgnoreField{JSONPaths: []string{"." + strings.Repeat("a", 2000)}},
			`has 2001 bytes, more than the limit of 1024; shorten it`,
		},
		"too many": {workv1.IgnoreField{JSONPaths: slicesOf(".a", 101)}, `a strategy may have 100 expressions`},
		"too deep": {
			workv1.IgnoreField{JQPathExpressions: []string{strings.Repeat("(", 40) + "." + strings.Repeat(")", 40)}},
			`nests deeper than 30 levels`,
		},
		"a repeated pattern": {
			workv1.IgnoreField{JQPathExpressions: []string{`.a | test("(x{1000}){1000}")`}},
			`no counted repetition`,
		},
		"a broken pattern": {
			workv1.IgnoreField{JQPathExpressions: []string{`.a | test("(")`}},
			`the pattern is not a regular expression: missing closing )`,
		},
		"a built pattern": {
			workv1.IgnoreField{JQPathExpressions: []string{`.a | test(.b)`}},
			`test needs a string literal as its pattern`,
		},
		"a slice of jq": {
			workv1.IgnoreField{JQPathExpressions: []string{`.a[1:2]`}},
			`slices of jq are not supported here`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := left(t, tc.entry, sample)
			require.ErrorContains(t, err, tc.want)
			var fault *Error
			require.ErrorAs(t, err, &fault)
		})
	}
}

func slicesOf(s string, n int) []string { return strings.Split(strings.Repeat(s+" ", n-1)+s, " ") }

func TestNoMoreOfJQIsServedThanPaths(t *testing.T) {
	for _, hostile := range []string{
		"def f: f; f", "def f: [f]; f", "[range(1e9)]", "range(1e9)", `"x" * 1e9`, `repeat(.)`, "limit(3; repeat(1))", "until(false; .)",
		"while(true; .)", "input", "inputs", "$ENV", "env", "env.HOME", `@sh "x"`, "@base64", "input_filename", "$__loc__", "getpath([0])",
		"reduce .[] as $x (0; . + 1)", "foreach .[] as $x (0; .)", "label $out | break $out", "try error catch .", ".a as $x | $x",
		`import "a" as a; .`, `include "a"; .`, "{a: 1}", "[.]", ".a + .b", ".a - 1", ".a * 2", ".a / 2", ".a % 2", ".a |= 1", ".a = 1", ".a += 1",
		`"\(.a)"`, "if . then . else . end", "splits(\"a\")", "ltrimstr(\"a\")", "debug", "stderr", "halt", "error", "now", "recurse(.a)", "..a",
		"limit(1; .)", "with_entries(.)", "paths", "tojson", "ascii", "implode", "walk(.)", "$x", ".[.a]", "input_line_number", "ltrimstr", "get_search_list",
		"splits", "sub(\"a\";\"b\")", "combinations", "modulemeta", "halt_error", "getpath([\"a\"])", "pick(.a)", "del(.a)", "to_entries", "-.a", "?//", ".a ?// .b",
	} {
		_, err := parseJQ(hostile)
		require.Error(t, err, hostile)
		require.Regexp(t, `(write|correct|use|remove|simplify|complete)`, err.Error(), "%s has no fix", hostile)
	}
}
