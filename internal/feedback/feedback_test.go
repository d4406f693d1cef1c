// SPDX-License-Identifier: Apache-2.0

package feedback_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/internal/feedback"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

// decode returns the object of JSON that an API server sends.
func decode(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	require.NoError(t, u.UnmarshalJSON([]byte(text)))
	return u
}

func paths(pairs ...string) []workv1.FeedbackRule {
	rule := workv1.FeedbackRule{Type: workv1.FeedbackRuleTypeJSONPaths}
	for i := 0; i+1 < len(pairs); i += 2 {
		rule.JSONPaths = append(rule.JSONPaths, workv1.JSONPath{Name: pairs[i], Path: pairs[i+1]})
	}
	return []workv1.FeedbackRule{rule}
}

func wellKnown() []workv1.FeedbackRule {
	return []workv1.FeedbackRule{{Type: workv1.FeedbackRuleTypeWellKnownStatus}}
}

// show formats values as name=type:value.
func show(values []workv1.FeedbackValue) []string {
	var out []string
	for _, v := range values {
		f, text := v.FieldValue, "?"
		switch {
		case f.Integer != nil:
			text = fmt.Sprint(*f.Integer)
		case f.String != nil:
			text = *f.String
		case f.Boolean != nil:
			text = fmt.Sprint(*f.Boolean)
		case f.JSONRaw != nil:
			text = *f.JSONRaw
		}
		out = append(out, fmt.Sprintf("%s=%s:%s", v.Name, f.Type, text))
	}
	return out
}

func TestWellKnownValues(t *testing.T) {
	for name, tc := range map[string]struct {
		object string
		want   []string
	}{
		"Deployment": {
			`{"apiVersion":"apps/v1","kind":"Deployment","status":{"readyReplicas":1,"replicas":3,"availableReplicas":2}}`,
			[]string{"ReadyReplicas=Integer:1", "Replicas=Integer:3", "AvailableReplicas=Integer:2"},
		},
		"Deployment that is new": {`{"apiVersion":"apps/v1","kind":"Deployment"}`, nil},
		"DaemonSet": {
			`{"apiVersion":"apps/v1","kind":"DaemonSet","status":{"numberReady":1,"desiredNumberScheduled":3,"numberAvailable":2}}`,
			[]string{"NumberReady=Integer:1", "DesiredNumberScheduled=Integer:3", "NumberAvailable=Integer:2"},
		},
		"Job": {
			`{"apiVersion":"batch/v1","kind":"Job","status":{"succeeded":1,"conditions":[{"type":"Suspended","status":"False"},{"type":"Complete","status":"True"}]}}`,
			[]string{"JobComplete=String:True", "JobSucceeded=Integer:1"},
		},
		"Pod": {
			`{"apiVersion":"v1","kind":"Pod","status":{"phase":"Running","conditions":[{"type":"Ready","status":"False"}]}}`,
			[]string{"PodReady=String:False", "PodPhase=String:Running"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			values, err := feedback.Evaluate(decode(t, tc.object), wellKnown(), feedback.Options{})
			require.NoError(t, err)
			require.Equal(t, tc.want, show(values))
		})
	}
	for _, object := range []string{
		`{"apiVersion":"v1","kind":"ServiceAccount"}`, `{"apiVersion":"apps/v1beta1","kind":"Deployment"}`, `{"apiVersion":"example.com/v1","kind":"Pod"}`,
	} {
		u := decode(t, object)
		values, err := feedback.Evaluate(u, wellKnown(), feedback.Options{})
		require.ErrorContains(t, err, "cannot find the wellknown statuses for resource with gvk "+u.GroupVersionKind().String())
		require.Empty(t, values)
	}
}

const object = `{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"x","flags":[true,false],"labels":{"a.b/c":"dotted"}},
	"status":{"n":1,"s":"text","b":true,"f":1.5,"null":null,"empty":[],"list":[{"k":"a","v":1},{"k":"b","v":2},{"k":"c"}],"map":{"z":1,"y":"<2>","x":null}}}`

func TestPathsGiveValuesOfThreeTypes(t *testing.T) {
	for path, want := range map[string]string{
		".status.n":                      "Integer:1",
		".status.s":                      "String:text",
		".status.b":                      "Boolean:true",
		"$.status.s":                     "String:text",
		"@.metadata.name":                "String:x",
		`.metadata.labels.a\.b/c`:        "String:dotted",
		`.metadata.labels['a\.b/c']`:     "String:dotted",
		".status.list[0].k":              "String:a",
		".status.list[-1].k":             "String:c",
		".status.list[*].v":              "Integer:1",
		".status.list[1:].k":             "String:b",
		".status.list[0:3:2].k":          "String:a",
		`.status.list[?(@.k=="b")].v`:    "Integer:2",
		`.status.list[?(@.v>1)].k`:       "String:b",
		`.status.list[?(@.v<=1.5)].k`:    "String:a",
		`.status.list[?(@.v)].k`:         "String:a",
		`.metadata.flags[?(@==true)]`:    "Boolean:true",
		`.metadata.flags[?(@!=true)]`:    "Boolean:false",
		`.status.list[?(@.v!=1)].k`:      "String:b",
		".status.list[1,0].k":            "String:b",
		"..k":                            "String:a",
		".status.map.*":                  "",
		".status.null":                   "",
		".status.none.of.these":          "",
		".status.list[*].none":           "",
		`.status.list[?(@.k=="no")].v`:   "",
		".status.s.below":                "",
		".status.s.*":                    "",
		`.status.list[?(@.none=="b")].v`: "",
	} {
		values, err := feedback.Evaluate(decode(t, object), paths("v", path), feedback.Options{})
		require.NoError(t, err, path)
		if want == "" {
			require.Empty(t, values, path)
			continue
		}
		require.Equal(t, []string{"v=" + want}, show(values), path)
	}
}

func TestPathsThatCannotBeReadAreNamed(t *testing.T) {
	for path, want := range map[string]string{
		".status.f":                         "it leads to a fraction, not to an integer, a string or a boolean",
		".status.map":                       "it leads to a map",
		".status.list":                      "enable the feature gate RawFeedbackJsonString",
		"":                                  "it leads to a map",
		".status.empty[0]":                  "the index is out of bounds, the list has 0 elements",
		".status.list[5]":                   "the list has 3 elements",
		".status.list[9223372036854775807]": "out of bounds",
		".status.list[2:1]":                 "the range ends before it begins",
		".status.list[0:2:0]":               "the step of a range must be positive",
		".status.map[*]":                    "a map is taken for a list",
		".status.map[0]":                    "a map is taken for a list",
		`.status.map[?(@.a=="b")]`:          "a map is taken for a list",
		`.status.list[?(@.k==1)]`:           "a filter compares values of different kinds",
		`.status.list[?(@.k==@..k)].v`:      "",
		`.status.list[?(@.*=="a")]`:         "a filter can only compare one value with another",
		`.status.list[?(@.k=<"a")]`:         `"=<" is not an operator of a filter`,
		`.metadata.flags[?(@>true)]`:        "or kinds that have no order",
		`.metadata.flags[?(@==1)]`:          "a filter compares values of different kinds",
		`.status.list[?(@==@)]`:             "or kinds that have no order",
		"status.n":                          `"status" is not understood; begin the names of fields with a dot`,
		"{.status.n}":                       "it is not a JSONPath",
		".status.n}{.status.s":              "it is not one expression; write it without braces",
		".status.n} text":                   "write it without braces",
		"range .status.list[*]":             `"range" is not understood`,
		".status.list[":                     "unterminated array",
		".status....n":                      "invalid multiple recursive descent",
		strings.Repeat(".x", 600):           "it has 1200 bytes, more than 1024",
	} {
		values, err := feedback.Evaluate(decode(t, object), paths("good", ".status.n", "bad", path, "also", ".status.s"), feedback.Options{})
		if want == "" {
			require.NoError(t, err, path)
			continue
		}
		require.ErrorContains(t, err, want, path)
		require.ErrorContains(t, err, `of the value "bad"`, path)
		require.Equal(t, []string{"good=Integer:1", "also=String:text"}, show(values), "what can be read is given")
	}
}

func TestAVersionThatIsNotTheObjectsIsAnError(t *testing.T) {
	rules := paths("old", ".status.n", "any", ".status.n", "same", ".status.n")
	rules[0].JSONPaths[0].Version, rules[0].JSONPaths[2].Version = "v1beta1", "v1"
	values, err := feedback.Evaluate(decode(t, object), rules, feedback.Options{})
	require.ErrorContains(t, err, `the path ".status.n" is for version "v1beta1" and the object has version v1`)
	require.Equal(t, []string{"any=Integer:1", "same=Integer:1"}, show(values))
}

func TestTheGateGivesStructuresAsJSON(t *testing.T) {
	on := feedback.Options{RawJSON: true}
	for path, want := range map[string]string{
		".status.n":           "Integer:1",
		".status.f":           "JsonRaw:1.5",
		".status.map":         `JsonRaw:{"x":null,"y":"<2>","z":1}`,
		".status.map.*":       `JsonRaw:[null,"<2>",1]`,
		".status.empty":       "JsonRaw:[]",
		".status.list[*].k":   `JsonRaw:["a","b","c"]`,
		".status.list[0]":     `JsonRaw:{"k":"a","v":1}`,
		".status.list[0:1].k": "String:a",
	} {
		values, err := feedback.Evaluate(decode(t, object), paths("v", path), on)
		require.NoError(t, err, path)
		require.Equal(t, []string{"v=" + want}, show(values), path)
	}
	values, err := feedback.Evaluate(decode(t, object), paths("v", ".status.null"), on)
	require.NoError(t, err)
	require.Empty(t, values)

	values, err = feedback.Evaluate(decode(t, object), paths("v", ".status.map"), feedback.Options{RawJSON: true, MaxRawLength: 25})
	require.ErrorContains(t, err, "as JSON it has more than 25 bytes; name a part of it")
	require.Empty(t, values)
	long := decode(t, fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","fits":[%q],"long":[%q]}`, strings.Repeat("x", 1020), strings.Repeat("x", 1021)))
	values, err = feedback.Evaluate(long, paths("fits", ".fits", "long", ".long"), feedback.Options{RawJSON: true, MaxRawLength: 1 << 20})
	require.ErrorContains(t, err, "as JSON it has more than 1024 bytes")
	require.Len(t, values, 1)
	require.Len(t, *values[0].FieldValue.JSONRaw, 1024)
}

func TestOneNameHoldsOneValue(t *testing.T) {
	rules := append(paths("PodPhase", ".metadata.name", "n", ".metadata.none", "n", ".metadata.name"), wellKnown()...)
	pod := decode(t, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"status":{"phase":"Running"}}`)
	values, err := feedback.Evaluate(pod, rules, feedback.Options{})
	require.EqualError(t, err, `the name "PodPhase" is given to two values, the first is reported; give the value at ".status.phase" a name of its own`)
	require.Equal(t, []string{"PodPhase=String:p", "n=String:p"}, show(values))
}

func TestAnUnknownKindOfRuleIsAnError(t *testing.T) {
	_, err := feedback.Evaluate(decode(t, object), []workv1.FeedbackRule{{Type: "Other"}}, feedback.Options{})
	require.ErrorContains(t, err, `unknown type "Other" of a feedback rule`)
}

func TestOfASecretSingleValuesAlone(t *testing.T) {
	secret := decode(t, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"data":{"password":"aHVudGVyMg==","user":"Ym9i"}}`)
	for _, o := range []feedback.Options{{}, {RawJSON: true}} {
		values, err := feedback.Evaluate(secret, paths("user", ".data.user", "all", ".data", "each", ".data.*", "deep", "..password", "cast", ".data.password[0]"), o)
		require.Equal(t, []string{"user=String:Ym9i", "deep=String:aHVudGVyMg=="}, show(values))
		require.ErrorContains(t, err, `the path ".data" of the value "all": it leads to a map, and of a Secret only single values are given`)
		require.ErrorContains(t, err, `the path ".data.*" of the value "each": it matches more than one value of a Secret`)
		require.NotContains(t, err.Error(), "aHVudGVyMg==")
	}
}

func TestWhatIsGivenIsBounded(t *testing.T) {
	var pairs []string
	for i := range 120 {
		pairs = append(pairs, fmt.Sprintf("v%03d", i), ".status.n")
	}
	values, err := feedback.Evaluate(decode(t, object), paths(pairs...), feedback.Options{})
	require.Len(t, values, feedback.MaxValues)
	require.ErrorContains(t, err, `more than 100 values are requested of one object; the value "v100" is left out`)
	require.ErrorContains(t, err, "; and 15 more")

	values, err = feedback.Evaluate(decode(t, object), paths("one", ".status.s", "two", ".status.s"), feedback.Options{MaxBytes: 13})
	require.Equal(t, []string{"one=String:text"}, show(values))
	require.ErrorContains(t, err, `the value "two" takes 7 bytes, but only 6 are left`)

	long := decode(
		t,
		fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","fits":%q,"long":%q}`, strings.Repeat("x", feedback.MaxString), strings.Repeat("x", feedback.MaxString+1)),
	)
	values, err = feedback.Evaluate(long, paths("fits", ".fits", "long", ".long"), feedback.Options{})
	require.Len(t, values, 1)
	require.ErrorContains(t, err, "the text has 16385 bytes, more than 16384")

	_, err = feedback.Evaluate(long, paths(strings.Repeat("ä", 5000), strings.Repeat("[", 1000)), feedback.Options{})
	require.Less(t, len(err.Error()), 4000)
}

// wide is an object that is expensive to search.
func wide(t testing.TB) *unstructured.Unstructured {
	item := map[string]any{"v": int64(1)}
	for range 30 {
		item = map[string]any{"a": item, "b": []any{int64(1), "x", item}}
		if raw, err := json.Marshal(item); err == nil && len(raw) > 1<<18 {
			break
		}
	}
	raw, err := json.Marshal(map[string]any{
		"apiVersion": "example.com/v1", "kind": "Wide", "items": []any{item, item, item},
	})
	require.NoError(t, err)
	return decode(t, string(raw))
}

func TestAHostilePathIsGivenUp(t *testing.T) {
	u := wide(t)
	for _, path := range []string{
		"..", strings.Repeat("...*", 250), strings.Repeat(".*", 400), strings.Repeat("[*,*,*]", 100), ".items" + strings.Repeat("[*,*,*,*]", 50),
		".items" + strings.Repeat("[0:,0:,0:]", 90), `.items[?(@..v==@..v)]`, ".items[" + strings.Repeat("*,", 400) + "*]..", "..[?()][?()]..",
		strings.Repeat("[?(", 300), strings.Repeat("'", 1023), strings.Repeat("[1,", 300),
	} {
		for _, o := range []feedback.Options{{}, {RawJSON: true}} {
			_, err := feedback.Evaluate(u, paths("one", path, "two", path), o)
			require.Error(t, err, path)
		}
	}
	long := decode(t, `{"apiVersion":"example.com/v1","kind":"Long","list":[`+strings.Repeat("1,", 30_000)+`1]}`)
	for _, path := range []string{".list[?()]", ".list[?(@>0)]", ".list[*]", ".list[0:30000]", ".list[?(@.x)]", ".list.*", "..kind"} {
		_, err := feedback.Evaluate(long, paths("one", path), feedback.Options{})
		require.ErrorContains(t, err, "it visits more than 20000 fields", path)
	}
	hostile := []string{"first", ".kind"}
	for i := range 9 {
		hostile = append(hostile, fmt.Sprintf("hostile%d", i), "...*...*...*")
	}
	hostile = append(hostile, "good", ".kind", "last", "...*...*...*", "late", ".kind")
	values, err := feedback.Evaluate(u, paths(hostile...), feedback.Options{})
	require.ErrorContains(t, err, `the path "...*...*...*" of the value "hostile0": it visits more than 20000 fields`)
	require.Equal(t, []string{"first=String:Wide", "good=String:Wide"}, show(values), "each path has its share, and the object has an end")
}

func TestTheSameObjectGivesTheSameValues(t *testing.T) {
	u := decode(t, object)
	rules := paths("all", ".*", "map", ".status.map.*", "deep", "..", "name", "..name")
	first, firstErr := feedback.Evaluate(u, rules, feedback.Options{RawJSON: true})
	for range 50 {
		again, err := feedback.Evaluate(u, rules, feedback.Options{RawJSON: true})
		require.Empty(t, cmp.Diff(first, again))
		require.Equal(t, firstErr, err)
	}
	require.Empty(t, cmp.Diff(decode(t, object), u), "the object is not changed")
}
