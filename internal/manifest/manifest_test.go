// SPDX-License-Identifier: Apache-2.0

package manifest_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/internal/manifest"
)

func TestDecodeSaysWhatIsWrongAndHowToMendIt(t *testing.T) {
	nested := strings.Repeat(`{"a":`, manifest.MaxDepth+1) + "1" + strings.Repeat("}", manifest.MaxDepth+1)
	for name, tc := range map[string]struct{ raw, want string }{
		"nothing at all":              {" ", "the manifest is empty; remove it from workload.manifests"},
		"text that is no JSON":        {`{"a":`, "the manifest is not JSON; correct its syntax"},
		"a list instead of an object": {`[]`, "the manifest is not an object; write apiVersion, kind and metadata"},
		"too many bytes": {
			`"` + strings.Repeat("a", manifest.MaxBytes) + `"`,
			"the manifest has 1048578 bytes, more than the limit of 1048576; split it",
		},
		"nesting without end": {nested, "the manifest nests deeper than 200 levels; flatten it"},
		"no apiVersion": {
			`{"kind":"A"}`,
			"apiVersion: must be set; write the group and version, for example apps/v1",
		},
		"an apiVersion that is a number": {`{"apiVersion":1}`, "apiVersion: must be a string; put the value in quotes"},
		"an apiVersion with three parts": {
			`{"apiVersion":"a/b/c","kind":"A"}`,
			"apiVersion: has more than one slash; write group/version",
		},
		"no kind": {`{"apiVersion":"v1"}`, "kind: must be set; write the kind, for example ConfigMap"},
		"a List": {
			`{"apiVersion":"v1","kind":"List","items":[]}`,
			"items: a list is not an object; put each item into workload.manifests",
		},
		"no metadata": {
			`{"apiVersion":"v1","kind":"A"}`,
			"metadata: must be an object; give the object a name",
		},
		"no name": {
			`{"apiVersion":"v1","kind":"A","metadata":{}}`,
			"metadata.name: must be set; give the object a name",
		},
		"generateName": {
			`{"apiVersion":"v1","kind":"A","metadata":{"generateName":"a-"}}`,
			"metadata.generateName: must not be set; set metadata.name, so that the object can be found again",
		},
		"a name that leaves its path": {
			`{"apiVersion":"v1","kind":"A","metadata":{"name":"../x"}}`,
			`metadata.name: may not contain '/'; correct "../x"`,
		},
		"a namespace that leaves its path": {
			`{"apiVersion":"v1","kind":"A","metadata":{"name":"x","namespace":".."}}`,
			`metadata.namespace: may not be '..'; correct ".."`,
		},
		"a label that is a boolean": {
			`{"apiVersion":"v1","kind":"A","metadata":{"name":"x","labels":{"on":true}}}`,
			"metadata.labels[on]: must be a string; put the value in quotes",
		},
		"annotations that are a list": {
			`{"apiVersion":"v1","kind":"A","metadata":{"name":"x","annotations":[]}}`,
			"metadata.annotations: must be an object; write key: value pairs",
		},
		"an owner without uid": {
			`{"apiVersion":"v1","kind":"A","metadata":{"name":"x","ownerReferences":[{"name":"y"}]}}`,
			"metadata.ownerReferences: must be a list of objects with a uid; correct or remove it",
		},
		"an owner that is a string": {
			`{"apiVersion":"v1","kind":"A","metadata":{"name":"x","ownerReferences":["y"]}}`,
			"metadata.ownerReferences: must be a list of objects with a uid; correct or remove it",
		},
		"owners that are an object": {
			`{"apiVersion":"v1","kind":"A","metadata":{"name":"x","ownerReferences":{}}}`,
			"metadata.ownerReferences: must be a list of objects with a uid; correct or remove it",
		},
	} {
		t.Run(name, func(t *testing.T) {
			u, err := manifest.Decode([]byte(tc.raw))
			require.Nil(t, u)
			require.EqualError(t, err, tc.want)
		})
	}
}

func TestDecodeKeepsBracketsInsideStringsAndLargeNumbers(t *testing.T) {
	u, err := manifest.Decode([]byte(`{"apiVersion":"v1","kind":"A","metadata":{"name":"x","namespace":"","labels":null},"a":"` +
		strings.Repeat(`[\"`, 500) + `","n":9007199254740993}`))
	require.NoError(t, err)
	require.Equal(t, int64(9007199254740993), u.Object["n"])
}

func TestCleanLeavesOutWhatOnlyServersWrite(t *testing.T) {
	u, err := manifest.Decode([]byte(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"x","namespace":"n",
		"uid":"1","resourceVersion":"5","generation":2,"creationTimestamp":"2026-01-01T00:00:00Z","managedFields":[],"selfLink":"/x",
		"ownerReferences":[{"uid":"2"}],"labels":{"a":"b"}},
		"spec":{"template":{"metadata":{"creationTimestamp":null,"labels":{"a":"b"}}},"list":[{"metadata":{"creationTimestamp":null}}]}}`))
	require.NoError(t, err)
	require.NoError(t, manifest.Clean(u, true))
	require.Empty(t, cmp.Diff(map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{
			"name": "x", "namespace": "n", "labels": map[string]any{"a": "b"},
			"ownerReferences": []any{map[string]any{"uid": "2"}},
		},
		"spec": map[string]any{
			"template": map[string]any{"metadata": map[string]any{"labels": map[string]any{"a": "b"}}},
			"list":     []any{map[string]any{"metadata": map[string]any{}}},
		},
	}, u.Object))
}

func TestCleanFitsTheNamespaceToTheScope(t *testing.T) {
	object := func(namespace string) *unstructured.Unstructured {
		u, err := manifest.Decode(fmt.Appendf(nil, `{"apiVersion":"v1","kind":"A","metadata":{"name":"x","namespace":%q}}`, namespace))
		require.NoError(t, err)
		return u
	}
	cluster := object("n")
	require.NoError(t, manifest.Clean(cluster, false))
	require.Empty(t, cluster.GetNamespace())
	require.EqualError(t, manifest.Clean(object(""), true),
		"metadata.namespace: must be set, because A is namespaced; name the namespace")
}

func TestCleanFoldsStringDataOfSecrets(t *testing.T) {
	for name, tc := range map[string]struct {
		content map[string]any
		want    map[string]any
		wantErr string
	}{
		"into no data": {
			map[string]any{"stringData": map[string]any{"a": "b"}},
			map[string]any{"data": map[string]any{"a": "Yg=="}}, "",
		},
		"over data": {
			map[string]any{"stringData": map[string]any{"a": "b"}, "data": map[string]any{"a": "eA==", "c": "eA=="}},
			map[string]any{"data": map[string]any{"a": "Yg==", "c": "eA=="}}, "",
		},
		"null":   {map[string]any{"stringData": nil}, map[string]any{}, ""},
		"a list": {map[string]any{"stringData": []any{}}, nil, "stringData: must be an object; write key: value pairs"},
		"beside a bad": {
			map[string]any{"stringData": map[string]any{"a": "b"}, "data": "x"},
			nil,
			"data: must be an object; write key: value pairs",
		},
		"of a number": {
			map[string]any{"stringData": map[string]any{"a": int64(1)}},
			nil,
			"stringData[a]: must be a string; put the value in quotes",
		},
	} {
		t.Run(name, func(t *testing.T) {
			u := &unstructured.Unstructured{Object: tc.content}
			u.SetAPIVersion("v1")
			u.SetKind("Secret")
			u.SetName("s")
			u.SetNamespace("n")
			err := manifest.Clean(u, true)
			if tc.wantErr != "" {
				require.EqualError(t, err, tc.wantErr)
				return
			}
			require.NoError(t, err)
			delete(u.Object, "apiVersion")
			delete(u.Object, "kind")
			delete(u.Object, "metadata")
			require.Empty(t, cmp.Diff(tc.want, u.Object))
		})
	}
}

func TestRankPutsWhatOthersNeedFirst(t *testing.T) {
	kinds := []string{
		"Ingress",
		"Job",
		"Deployment",
		"CustomResourceDefinition",
		"Service",
		"ConfigMap",
		"Role",
		"ServiceAccount",
		"APIService",
		"Namespace",
		"MyKind",
	}
	slices.SortStableFunc(kinds, func(a, b string) int { return manifest.Rank(a) - manifest.Rank(b) })
	require.Equal(
		t,
		[]string{"CustomResourceDefinition", "Namespace", "Role", "ServiceAccount", "ConfigMap", "Service", "Job", "Deployment", "APIService", "Ingress", "MyKind"},
		kinds,
	)
	require.Equal(t, manifest.Rank("NetworkPolicy"), manifest.RankResource("networkpolicies"))
	require.Equal(t, manifest.RankOther, manifest.RankResource("mykinds"))
	require.Less(t, manifest.RankOther, manifest.RankBroken)
}

// FuzzDecode: for any input, Decode neither panics nor returns an object without a valid
// name, and its errors are short and contain no content.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","namespace":"n"},"data":{"a":"b"}}`,
		`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"x","namespace":"n","creationTimestamp":null},"stringData":{"a":"sesame"}}`,
		`{"apiVersion":"v1","kind":"List","items":[{}]}`,
		`{"apiVersion":"a/b/c","kind":1}`, `[[[[`, `"\u0000"`, "{\"metadata\":{\"name\":\"..\"}}",
		`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"x"},"stringData":["sesame"]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		u, err := manifest.Decode(raw)
		if err != nil {
			require.Nil(t, u)
			require.LessOrEqual(t, len(err.Error()), 512)
			require.NotContains(t, err.Error(), "sesame")
			return
		}
		require.NotEmpty(t, u.GetName())
		require.NotEmpty(t, u.GetKind())
		require.Empty(t, u.GetGenerateName())
		require.NotContains(t, u.GetName(), "/")
		if err := manifest.Clean(u, u.GetNamespace() != ""); err != nil {
			require.LessOrEqual(t, len(err.Error()), 512)
			return
		}
		require.Empty(t, u.GetResourceVersion())
		_, err = json.Marshal(u.Object)
		require.NoError(t, err)
	})
}
