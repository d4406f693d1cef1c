// SPDX-License-Identifier: Apache-2.0

package ignore

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

// entry is a part of managedFields.
type entry struct{ manager, operation, fields string }

func managed(t *testing.T, raw string, entries ...entry) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{Object: object(t, raw)}
	var all []metav1.ManagedFieldsEntry
	for _, e := range entries {
		fields := &metav1.FieldsV1{}
		fields.SetRawString(e.fields)
		all = append(all, metav1.ManagedFieldsEntry{
			Manager: e.manager, Operation: metav1.ManagedFieldsOperationType(e.operation), APIVersion: "apps/v1", FieldsType: "FieldsV1", FieldsV1: fields,
		})
	}
	u.SetManagedFields(all)
	return u
}

func jq(expressions ...string) []workv1.IgnoreField {
	return []workv1.IgnoreField{{Condition: "OnSpokePresent", JQPathExpressions: expressions}}
}

func TestWhatIsAppliedInPlaceOfTheManifest(t *testing.T) {
	const (
		desired = `{"apiVersion":"apps/v1","kind":"D","metadata":{"name":"web"},"spec":{"replicas":1,"image":"2"}}`
		live    = `{"apiVersion":"apps/v1","kind":"D","metadata":{"name":"web"},"spec":{"replicas":5,"image":"1"}}`
		list    = `{"apiVersion":"apps/v1","kind":"D","metadata":{"name":"web"},"spec":{"env":[
			{"name":"A","value":"1"},{"name":"B","value":"1"},{"name":"C","value":"1"}]}}`
		edited = `{"apiVersion":"apps/v1","kind":"D","metadata":{"name":"web"},"spec":{"env":[
			{"name":"A","value":"1"},{"name":"B","value":"9"},{"name":"X","value":"x"},{"name":"C","value":"1"}]}}`
		keyed = `{"f:spec":{"f:env":{
			"k:{\"name\":\"A\"}":{".":{},"f:name":{},"f:value":{}},
			"k:{\"name\":\"B\"}":{".":{},"f:name":{},"f:value":{}},
			"k:{\"name\":\"C\"}":{".":{},"f:name":{},"f:value":{}}}}}`
		bare = `{"f:spec":{"f:env":{
			"k:{\"name\":\"A\"}":{".":{},"f:name":{},"f:value":{}},
			"k:{\"name\":\"B\"}":{".":{},"f:name":{}},
			"k:{\"name\":\"C\"}":{".":{},"f:name":{},"f:value":{}}}}}`
	)
	for name, tc := range map[string]struct {
		ignore        []workv1.IgnoreField
		desired, live string
		entries       []entry
		want          string
	}{
		"a field that is ours keeps its live value": {
			jq(".spec.replicas"),
			desired,
			live,
			[]entry{
				{"work-agent", "Apply", `{"f:spec":{"f:replicas":{},"f:image":{}}}`},
			},
			`{"spec":{"replicas":5,"image":"2"}}`,
		},
		"a field that somebody took over is left out": {
			jq(".spec.replicas"),
			desired,
			live,
			[]entry{{
				"work-agent",
				"Apply",
				`{"f:spec":{"f:image":{}}}`,
			}, {
				"hpa",
				"Update",
				`{"f:spec":{"f:replicas":{}}}`,
			}},
			`{"spec":{"image":"2"}}`,
		},
		"a field that nobody owns is left out": {
			jq(".spec.replicas"), desired, live, []entry{{"work-agent", "Apply", `{"f:spec":{"f:image":{}}}`}},
			`{"spec":{"image":"2"}}`,
		},
		"a field that is ours by Update alone is left out": {
			jq(".spec.replicas"),
			desired,
			live,
			[]entry{
				{"work-agent", "Update", `{"f:spec":{"f:replicas":{},"f:image":{}}}`},
			},
			`{"spec":{"image":"2"}}`,
		},
		"without managed fields the live value is sent": {
			jq(".spec.replicas"), desired, live, nil, `{"spec":{"replicas":5,"image":"2"}}`,
		},
		"a field that the manifest has dropped is kept while it is ours": {
			jq(".spec.replicas"), `{"apiVersion":"apps/v1","kind":"D","metadata":{"name":"web"},"spec":{"image":"2"}}`, live,
			[]entry{{"work-agent", "Apply", `{"f:spec":{"f:replicas":{},"f:image":{}}}`}},
			`{"spec":{"replicas":5,"image":"2"}}`,
		},
		"a field that is gone from the live object stays gone": {
			jq(".spec.paused"), `{"apiVersion":"apps/v1","kind":"D","metadata":{"name":"web"},"spec":{"paused":true,"image":"2"}}`, live,
			[]entry{{"work-agent", "Apply", `{"f:spec":{"f:image":{}}}`}}, `{"spec":{"image":"2"}}`,
		},
		"an object all of which is ignored goes whole": {
			jq(".spec.x.y"), `{"apiVersion":"apps/v1","kind":"D","metadata":{"name":"web"},"spec":{"x":{"y":1},"image":"2"}}`,
			`{"apiVersion":"apps/v1","kind":"D","metadata":{"name":"web"},"spec":{"x":{"y":2,"z":3},"image":"1"}}`,
			[]entry{{"work-agent", "Apply", `{"f:spec":{"f:image":{}}}`}}, `{"spec":{"image":"2"}}`,
		},
		"of an ignored object only our part is kept": {
			jq(".spec.x"), `{"apiVersion":"apps/v1","kind":"D","metadata":{"name":"web"},"spec":{"x":{"y":1},"image":"2"}}`,
			`{"apiVersion":"apps/v1","kind":"D","metadata":{"name":"web"},"spec":{"x":{"y":2,"z":3},"image":"1"}}`,
			[]entry{{
				"work-agent",
				"Apply",
				`{"f:spec":{"f:image":{},"f:x":{"f:y":{}}}}`,
			}, {
				"them",
				"Update",
				`{"f:spec":{"f:x":{"f:z":{}}}}`,
			}},
			`{"spec":{"x":{"y":2},"image":"2"}}`,
		},
		"a field of an element that is ours": {
			jq(`.spec.env[] | select(.name=="B") | .value`), list, edited, []entry{{"work-agent", "Apply", keyed}},
			`{"spec":{"env":[{"name":"A","value":"1"},{"name":"B","value":"9"},{"name":"C","value":"1"}]}}`,
		},
		"a field of an element that is theirs": {
			jq(`.spec.env[] | select(.name=="B") | .value`), list, edited, []entry{{"work-agent", "Apply", bare}},
			`{"spec":{"env":[{"name":"A","value":"1"},{"name":"B"},{"name":"C","value":"1"}]}}`,
		},
		"an element that is ours keeps its place": {
			jq(`.spec.env[] | select(.name=="B")`), list, edited, []entry{{"work-agent", "Apply", keyed}},
			`{"spec":{"env":[{"name":"A","value":"1"},{"name":"B","value":"9"},{"name":"C","value":"1"}]}}`,
		},
		"an element that is theirs": {
			jq(`.spec.env[] | select(.name=="X")`),
			`{"apiVersion":"apps/v1","kind":"D","metadata":{"name":"web"},"spec":{"env":[{"name":"X","value":"0"},{"name":"A","value":"2"}]}}`, edited,
			[]entry{{
				"work-agent",
				"Apply",
				keyed,
			}, {
				"them",
				"Update",
				`{"f:spec":{"f:env":{"k:{\"name\":\"X\"}":{".":{},"f:name":{},"f:value":{}}}}}`,
			}},
			`{"spec":{"env":[{"name":"A","value":"2"}]}}`,
		},
		"a new element is applied whole": {
			jq(`.spec.env[].value`),
			`{"apiVersion":"apps/v1","kind":"D","metadata":{"name":"web"},"spec":{"env":[{"name":"A","value":"2"},{"name":"N","value":"2"}]}}`,
			edited,
			[]entry{
				{"work-agent", "Apply", bare},
			},
			`{"spec":{"env":[{"name":"A","value":"1"},{"name":"N","value":"2"}]}}`,
		},
		"below a list that is one value the live value is sent": {
			jq(`.spec.list[0].x`), `{"apiVersion":"apps/v1","kind":"D","metadata":{"name":"web"},"spec":{"list":[{"x":1,"y":2},{"x":1}]}}`,
			`{"apiVersion":"apps/v1","kind":"D","metadata":{"name":"web"},"spec":{"list":[{"x":7,"y":1}]}}`,
			[]entry{{"them", "Update", `{"f:spec":{"f:list":{}}}`}}, `{"spec":{"list":[{"x":7,"y":2},{"x":1}]}}`,
		},
		"below an object that is one value too": {
			jq(`.spec.selector.a`), `{"apiVersion":"apps/v1","kind":"D","metadata":{"name":"web"},"spec":{"selector":{"a":"1","b":"2"}}}`,
			`{"apiVersion":"apps/v1","kind":"D","metadata":{"name":"web"},"spec":{"selector":{"a":"7","b":"1"}}}`,
			[]entry{{"work-agent", "Apply", `{"f:spec":{"f:selector":{}}}`}}, `{"spec":{"selector":{"a":"7","b":"2"}}}`,
		},
		"an element of a set": {
			jq(`.spec.set[] | select(. == "b")`),
			`{"apiVersion":"apps/v1","kind":"D","metadata":{"name":"web"},"spec":{"set":["a","b","c"]}}`,
			`{"apiVersion":"apps/v1","kind":"D","metadata":{"name":"web"},"spec":{"set":["a","b","c"]}}`,
			[]entry{
				{"work-agent", "Apply", `{"f:spec":{"f:set":{"v:\"a\"":{},"v:\"b\"":{},"v:\"c\"":{}}}}`},
			},
			`{"spec":{"set":["a","b","c"]}}`,
		},
		"what the live object alone matches stays as the manifest has it": {
			jq(`.spec | select(.image == "1") | .image`),
			desired,
			live,
			[]entry{
				{"work-agent", "Apply", `{"f:spec":{"f:replicas":{},"f:image":{}}}`},
			},
			`{"spec":{"replicas":1,"image":"2"}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := Parse(tc.ignore)
			require.NoError(t, err)
			in, there := managed(t, tc.desired), managed(t, tc.live, tc.entries...)
			before, liveBefore := in.DeepCopy(), there.DeepCopy()
			got, err := f.Apply(in, there, "work-agent")
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(object(t, tc.want)["spec"], got.Object["spec"]))
			require.Equal(t, before, in, "the manifest was changed")
			require.Equal(t, liveBefore, there, "the live object was changed")
			require.Len(t, got.GetAnnotations()[workv1.AnnotationConfigSpecHash], 64)
		})
	}
}

func TestTheDigestIsThatOfTheManifestWithoutWhatIsAlwaysIgnored(t *testing.T) {
	f, err := Parse([]workv1.IgnoreField{{
		JSONPaths: []string{".spec.replicas"},
	}, {
		Condition: "OnSpokeChange",
		JSONPaths: []string{".spec.image"},
	}})
	require.NoError(t, err)
	manifest := func(replicas, image, paused string) *unstructured.Unstructured {
		return managed(t, `{"apiVersion":"apps/v1","kind":"D","metadata":{"name":"web"},"spec":{"replicas":`+replicas+`,"image":`+image+`,"paused":`+paused+`}}`)
	}
	apply := func(desired, live *unstructured.Unstructured) *unstructured.Unstructured {
		out, err := f.Apply(desired, live, "work-agent")
		require.NoError(t, err)
		return out
	}
	first := apply(manifest("1", `"a"`, "true"), nil)
	require.Equal(t, map[string]any{"replicas": int64(1), "image": "a", "paused": true}, first.Object["spec"], "what is not there yet is made whole")
	live := managed(t, `{"apiVersion":"apps/v1","kind":"D","metadata":{"name":"web"},"spec":{"replicas":5,"image":"theirs","paused":true}}`,
		entry{"work-agent", "Apply", `{"f:spec":{"f:paused":{}}}`})
	live.SetAnnotations(first.GetAnnotations())
	require.Equal(t, map[string]any{"paused": true}, apply(manifest("1", `"a"`, "true"), live).Object["spec"], "an unchanged manifest leaves the edit")
	require.Equal(t, map[string]any{"paused": true}, apply(manifest("9", `"a"`, "true"), live).Object["spec"], "an always ignored field is no change")
	require.Equal(t, map[string]any{"image": "b", "paused": true}, apply(manifest("1", `"b"`, "true"), live).Object["spec"], "a change of the field overwrites it")
	require.Equal(t, map[string]any{"image": "a", "paused": false}, apply(manifest("1", `"a"`, "false"), live).Object["spec"], "so does any other change")
	live.SetAnnotations(nil)
	require.Equal(t, map[string]any{"image": "a", "paused": true}, apply(manifest("1", `"a"`, "true"), live).Object["spec"], "and the loss of the annotation")
}

func TestWhatRestsWithoutTheIgnored(t *testing.T) {
	fields, err := Parse([]workv1.IgnoreField{{
		Condition:         "OnSpokePresent",
		JQPathExpressions: []string{".spec.replicas", `.spec.env[] | select(.name == "B").value`},
	},
		{Condition: "OnSpokeChange", JSONPaths: []string{".spec.image"}}})
	require.NoError(t, err)
	desired := &unstructured.Unstructured{
		Object: object(t, `{"spec":{"replicas":1,"image":"2","paused":true,"env":[{"name":"A","value":"1"},{"name":"B","value":"1"}]}}`),
	}
	rest, err := fields.Rest(desired)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(object(t, `{"spec":{"paused":true,"env":[{"name":"A","value":"1"},{"name":"B"}]}}`), rest.Object))
	require.Len(t, desired.Object["spec"], 4, "the manifest itself is not changed")
}
