// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhatLooksLikeACredentialIsReplaced(t *testing.T) {
	for text, want := range map[string]string{
		"the hub rejects abcdef.0123456789abcdef now":                         "the hub rejects REDACTED now",
		"got eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJr.c2ln from":                     "got REDACTED from",
		"Authorization: Bearer abc.def-123":                                   "Authorization: REDACTED",
		"http://me:pass@proxy:3128 refused":                                   "http://REDACTED@proxy:3128 refused",
		"https://hub.example.com:6443/healthz":                                "https://hub.example.com:6443/healthz",
		"-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----": "REDACTED",
		`data: Invalid value: "hunter2": is wrong`:                            "data: REDACTED: is wrong",
		"--hub-token=abc def":                                                 "--REDACTED def",
		"with password 'hunter2'":                                             "with REDACTED'",
		strings.Repeat("a0", 40):                                              "REDACTED",
		"secret default/credentials is missing":                               "secret default/credentials is missing",
		"secrets \"web\" not found":                                           "secrets \"web\" not found",
		"deployment open-cluster-management-agent/klusterlet-agent 0/1":       "deployment open-cluster-management-agent/klusterlet-agent 0/1",
	} {
		require.Equal(t, want, Scrub(text))
	}
}

func TestValuesAreLeftOutAndNamesStay(t *testing.T) {
	in := map[string]any{
		"taints":              []any{map[string]any{"key": "a", "value": "shown"}},
		"customizedVariables": []any{map[string]any{"name": "A", "value": "gone"}},
		"data":                map[string]any{"key": "gone"},
		"bootstrapToken":      "gone",
		"workload": map[string]any{"manifests": []any{
			map[string]any{"kind": "Secret", "apiVersion": "v1", "metadata": map[string]any{"name": "s"}, "x": "gone"},
		}},
		"args":     []any{"gone"},
		"image":    "example.com/a@sha256:" + strings.Repeat("0a", 32),
		"replicas": int64(3),
	}
	require.Equal(t, map[string]any{
		"taints":              []any{map[string]any{"key": "a", "value": "shown"}},
		"customizedVariables": []any{map[string]any{"name": "A", "value": hidden}},
		"data":                map[string]any{"key": hidden},
		"bootstrapToken":      hidden,
		"workload": map[string]any{"manifests": []any{map[string]any{"kind": "Secret", "apiVersion": "v1",
			"metadata": map[string]any{"name": "s", "namespace": nil}}}},
		"args":     []any{hidden},
		"image":    in["image"],
		"replicas": int64(3),
	}, clean(in, "", ""))
}
