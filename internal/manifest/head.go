// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"encoding/json"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// maxHead bounds the names of an object together, in bytes; Kubernetes allows less.
const maxHead = 1024

// Head reads what a manifest says about its object, whether or not it can be decoded; all
// is empty if it says nothing.
func Head(raw []byte) (gvk schema.GroupVersionKind, namespace, name string) {
	var h struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Metadata   struct {
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
		} `json:"metadata"`
	}
	if len(raw) > MaxBytes || json.Unmarshal(raw, &h) != nil {
		return gvk, "", ""
	}
	namespace, name = h.Metadata.Namespace, h.Metadata.Name
	gv, err := schema.ParseGroupVersion(h.APIVersion)
	if err != nil || len(h.APIVersion)+len(h.Kind)+len(namespace)+len(name) > maxHead {
		return gvk, "", ""
	}
	return gv.WithKind(h.Kind), namespace, name
}
