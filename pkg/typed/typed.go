// SPDX-License-Identifier: Apache-2.0

// Package typed reads and converts Go types of an API over the dynamic client. A binary
// that uses it links only the types it names; a typed clientset would link every API group
// of Kubernetes.
//
// It reads live, without a cache; controllers read what they watch instead.
//
// The package is public: exported names keep their meaning within a minor version.
package typed

import (
	"context"
	"fmt"
	"iter"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/klog/v2"
)

// pageSize bounds one page of a list, so that a large collection is never held twice.
const pageSize = 500

// Get reads one object. An empty namespace means a cluster-scoped resource. API errors (not
// found, forbidden) are wrapped, so apierrors recognizes them.
func Get[T any](ctx context.Context, client dynamic.Interface, resource schema.GroupVersionResource, namespace, name string) (*T, error) {
	u, err := client.Resource(resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", resource.Resource, klog.KRef(namespace, name), err)
	}
	return FromUnstructured[T](u)
}

// List reads all objects that match the options, page by page. An empty
// namespace means all namespaces.
func List[T any](ctx context.Context, client dynamic.Interface, resource schema.GroupVersionResource, namespace string, o metav1.ListOptions) ([]T, error) {
	var out []T
	o.Limit = pageSize
	for u, err := range All(ctx, client.Resource(resource).Namespace(namespace), o) {
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", resource.Resource, err)
		}
		item, err := FromUnstructured[T](u)
		if err != nil {
			return nil, err
		}
		out = append(out, *item)
	}
	return out, nil
}

// All yields all objects that match the options, reading pages of at most o.Limit objects. An
// error is the last that it yields.
func All(ctx context.Context, api dynamic.ResourceInterface, o metav1.ListOptions) iter.Seq2[*unstructured.Unstructured, error] {
	return func(yield func(*unstructured.Unstructured, error) bool) {
		for {
			page, err := api.List(ctx, o)
			if err != nil {
				yield(nil, err)
				return
			}
			for i := range page.Items {
				if !yield(&page.Items[i], nil) {
					return
				}
			}
			if o.Continue = page.GetContinue(); o.Continue == "" {
				return
			}
		}
	}
}

// FromUnstructured converts u to T. Fields that T does not know are dropped; a field of
// another type is an error that names the object.
func FromUnstructured[T any](u *unstructured.Unstructured) (*T, error) {
	out := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, out); err != nil {
		return nil, fmt.Errorf("decoding %s %s: %w", u.GetKind(), klog.KObj(u), err)
	}
	return out, nil
}

// ToUnstructured converts a typed object, whose TypeMeta must be set. A null
// creationTimestamp and an empty status are left out, so that the result can be applied as
// it is.
func ToUnstructured(obj runtime.Object) (*unstructured.Unstructured, error) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return u.DeepCopy(), nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, fmt.Errorf("encoding %T: %w", obj, err)
	}
	u := &unstructured.Unstructured{Object: content}
	if u.GetKind() == "" || u.GetAPIVersion() == "" {
		return nil, fmt.Errorf("encoding %T %s: its apiVersion and kind are not set", obj, klog.KObj(u))
	}
	dropZero(content)
	return u, nil
}

// dropZero removes what Go types encode although it was never set.
func dropZero(content map[string]any) {
	if meta, ok := content["metadata"].(map[string]any); ok && meta["creationTimestamp"] == nil {
		delete(meta, "creationTimestamp")
	}
	if status, ok := content["status"].(map[string]any); ok && len(status) == 0 {
		delete(content, "status")
	}
}
