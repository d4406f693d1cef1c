// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// FuzzRedacted: whatever an object looks like, what holds values of users is not in the bundle.
func FuzzRedacted(f *testing.F) {
	const marker = "s3cr3tmarker"
	for _, seed := range []string{`{}`, `{"kind":"Pod","spec":{"containers":[{"name":"a","image":"b","env":[{"name":"x","value":"` + marker + `"}]}]}}`,
		`{"kind":"Pod","spec":{"containers":{"a":1}}}`,
		`{"kind":"Deployment","spec":{"template":{"spec":{"containers":[1,null]}}}}`,
		`{"metadata":{"annotations":{"a":"` + marker + `"}}}`,
		`{"kind":"ManifestWork","spec":{"workload":{"manifests":[{"kind":"Secret","data":{"a":"` + marker + `"}}, 1]}}}`,
		`{"kind":"X","spec":{"data":{"a":"` + marker + `"}}}`,
		`{"kind":"X","spec":{"token":["` + marker + `"]}}`, `{"kind":"X","spec":{"password":{"a":{"b":"` + marker + `"}}}}`,
		`{"kind":"ManagedCluster","status":{"clusterClaims":[{"name":"a","value":"` + marker + `"}]}}`,
		`{"kind":"X","spec":{"env":[[["` + marker + `"]]]}}`, `{"kind":"X","spec":{"taints":[{"value":"a"}]}}`} {
		f.Add([]byte(seed), "token")
	}
	f.Add([]byte(`{"kind":"X","spec":{}}`), "Data")
	f.Fuzz(func(t *testing.T, text []byte, field string) {
		var object map[string]any
		if json.Unmarshal(text, &object) != nil || object == nil {
			return
		}
		spec, ok := object["spec"].(map[string]any)
		if !ok {
			spec = map[string]any{}
		}
		lower := strings.ToLower(field)
		if lower != "token" && lower != "password" && field != "data" && field != "stringData" && field != "args" {
			field = "env"
		}
		spec[field] = []any{marker, []any{marker}, map[string]any{"x": []any{map[string]any{"y": marker}}}}
		object["spec"] = spec
		raw, err := json.Marshal(redacted(&unstructured.Unstructured{Object: object}))
		require.NoError(t, err)
		if !strings.Contains(string(text), marker) {
			require.NotContains(t, string(raw), marker, "the field %s is shown", field)
		}
	})
}

// FuzzScrub: what was cleaned needs no cleaning.
func FuzzScrub(f *testing.F) {
	for _, seed := range []string{"", "token=abc", "Bearer abcdefgh", "https://u:p@h/x", "abcdef.0123456789abcdef", "-----BEGIN KEY-----\nabc\n-----END KEY-----",
		`password: "x"`, `Invalid value: "x": no`, strings.Repeat("A", 80)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		const token = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl"
		require.NotContains(t, Scrub(text+" "+token+" "+text), token)
	})
}
