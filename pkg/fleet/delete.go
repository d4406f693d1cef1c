// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"encoding/json"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Remove deletes exactly the object that was read; it is no error when that is gone.
func Remove(ctx context.Context, c *Cluster, u *unstructured.Unstructured) error {
	uid := u.GetUID()
	policy := metav1.DeletePropagationBackground
	o := metav1.DeleteOptions{PropagationPolicy: &policy}
	if uid != "" {
		o.Preconditions = &metav1.Preconditions{UID: &uid}
	}
	err := c.Client.Resource(ResourceOf(u)).Namespace(u.GetNamespace()).Delete(ctx, u.GetName(), o)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// DropFinalizer deletes an object and removes finalizers from it.
func DropFinalizer(ctx context.Context, c *Cluster, resource schema.GroupVersionResource, u *unstructured.Unstructured, finalizers ...string) error {
	client := c.Client.Resource(resource).Namespace(u.GetNamespace())
	if err := Remove(ctx, c, u); err != nil {
		return err
	}
	for try := 0; ; try++ {
		live, err := client.Get(ctx, u.GetName(), metav1.GetOptions{})
		if apierrors.IsNotFound(err) || (err == nil && live.GetUID() != u.GetUID()) {
			return nil
		}
		if err != nil {
			return err
		}
		kept := slices.DeleteFunc(live.GetFinalizers(), func(f string) bool { return slices.Contains(finalizers, f) })
		if len(kept) == len(live.GetFinalizers()) {
			return nil
		}
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"finalizers": kept, "uid": live.GetUID(), "resourceVersion": live.GetResourceVersion()}})
		if err != nil {
			return err
		}
		_, err = client.Patch(ctx, u.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: FieldManager})
		if err == nil || apierrors.IsNotFound(err) {
			return nil
		}
		if !apierrors.IsConflict(err) || try == 5 {
			return err
		}
	}
}
