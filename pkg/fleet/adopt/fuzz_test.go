// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// recordOf returns the ConfigMap of a record with this text in it.
func recordOf(tb testing.TB, text []byte) *unstructured.Unstructured {
	tb.Helper()
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, err := z.Write(text)
	require.NoError(tb, err)
	require.NoError(tb, z.Close())
	return &unstructured.Unstructured{Object: map[string]any{
		"binaryData": map[string]any{recordKey: base64.StdEncoding.EncodeToString(packed.Bytes())}}}
}

// FuzzUnpack: a record that somebody edited is read or refused, and what was read can be looked
// up and packed again.
func FuzzUnpack(f *testing.F) {
	for _, seed := range []string{"", "null", "[]", "{}", "[null]", "[{}]", `[{"kind":1}]`, `[{"apiVersion":"v1","kind":"Secret"}]`, `[{"metadata":[]}]`,
		`[{"apiVersion":"v1","kind":"Service","metadata":{"name":"a","namespace":"b"},"spec":{"clusterIP":"10.0.0.1"}}]`,
		`[{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a","labels":{"a":1},"ownerReferences":[1]}}]`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		objects, err := unpack(recordOf(t, text))
		if err != nil {
			return
		}
		r := &record{objects: objects}
		for _, o := range objects {
			require.NotNil(t, r.find(o), "what is in a record is found in it")
		}
		again, err := pack("operator", objects)
		if err != nil {
			return
		}
		_, err = unpack(again)
		require.NoError(t, err)
	})
}

// FuzzUnpackRaw: no text in place of a record stops the program.
func FuzzUnpackRaw(f *testing.F) {
	whole, _, _ := unstructured.NestedString(recordOf(f, []byte("[{}]")).Object, "binaryData", recordKey)
	for _, seed := range []string{"", "%", "AAAA", whole, whole[:len(whole)-8]} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		objects, err := unpack(&unstructured.Unstructured{Object: map[string]any{"binaryData": map[string]any{recordKey: text}}})
		require.True(t, err == nil || objects == nil, "a record is read in part")
	})
}
