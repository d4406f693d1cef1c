// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"encoding/base64"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// SecretData decodes the data of a Secret.
func SecretData(u *unstructured.Unstructured) map[string][]byte {
	out := map[string][]byte{}
	encoded, _, _ := unstructured.NestedStringMap(u.Object, "data")
	for key, value := range encoded {
		if raw, err := base64.StdEncoding.DecodeString(value); err == nil {
			out[key] = raw
		}
	}
	return out
}

// SecretValue decodes one value of a Secret; "" when there is none.
func SecretValue(u *unstructured.Unstructured, key string) string {
	text, _, _ := unstructured.NestedString(u.Object, "data", key)
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return ""
	}
	return string(raw)
}
