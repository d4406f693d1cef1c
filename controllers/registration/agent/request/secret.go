// SPDX-License-Identifier: Apache-2.0

package request

import (
	"context"
	"encoding/base64"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// Secrets is the resource of Secrets.
var Secrets = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}

// SecretData returns the decoded content of a Secret; values that are not valid base64 are
// left out.
func SecretData(u *unstructured.Unstructured) map[string][]byte {
	data := map[string][]byte{}
	encoded, _, _ := unstructured.NestedStringMap(u.Object, "data")
	for key, value := range encoded {
		if raw, err := base64.StdEncoding.DecodeString(value); err == nil {
			data[key] = raw
		}
	}
	return data
}

// NewSecret returns a Secret with that content, without a name.
func NewSecret(data map[string][]byte) *unstructured.Unstructured {
	content := map[string]any{}
	for key, value := range data {
		content[key] = base64.StdEncoding.EncodeToString(value)
	}
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": content}}
}

// Seen is a Secret as it was last seen: it is changed or removed only if it is still the
// same.
type Seen struct {
	// Namespace is named in errors if it is set; Name, UID and ResourceVersion identify it.
	Namespace, Name string
	UID             types.UID
	ResourceVersion string
}

// String names it in errors.
func (s Seen) String() string {
	if s.Namespace == "" {
		return s.Name
	}
	return s.Namespace + "/" + s.Name
}

// Update changes it. A write in between is a conflict.
func (s Seen) Update(ctx context.Context, secrets dynamic.ResourceInterface, change func(*unstructured.Unstructured)) error {
	live, err := secrets.Get(ctx, s.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading secret %s: %w", s, err)
	}
	live.SetUID(s.UID)
	live.SetResourceVersion(s.ResourceVersion)
	change(live)
	if _, err := secrets.Update(ctx, live, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("writing secret %s: %w", s, err)
	}
	return nil
}

// Replace sets its content to that of u, and adds the labels and annotations of u to those
// set by users.
func (s Seen) Replace(ctx context.Context, secrets dynamic.ResourceInterface, u *unstructured.Unstructured) error {
	return s.Update(ctx, secrets, func(live *unstructured.Unstructured) {
		live.Object["data"] = u.Object["data"]
		live.SetLabels(labels.Merge(live.GetLabels(), u.GetLabels()))
		live.SetAnnotations(labels.Merge(live.GetAnnotations(), u.GetAnnotations()))
	})
}

// Remove deletes it; if it is already gone, that is not an error.
func (s Seen) Remove(ctx context.Context, secrets dynamic.ResourceInterface) error {
	err := secrets.Delete(ctx, s.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &s.UID, ResourceVersion: &s.ResourceVersion}})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("removing secret %s: %w", s, err)
	}
	return nil
}
