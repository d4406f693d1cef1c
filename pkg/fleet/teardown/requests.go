// SPDX-License-Identifier: Apache-2.0

package teardown

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// patchMetadata merges the fields into the metadata of the very object that was read. It is no
// error when the object is gone.
func patchMetadata(ctx context.Context, client dynamic.Interface, resource schema.GroupVersionResource, live *unstructured.Unstructured,
	fields map[string]any) error {
	fields["uid"], fields["resourceVersion"] = string(live.GetUID()), live.GetResourceVersion()
	body, err := json.Marshal(map[string]any{"metadata": fields})
	if err != nil {
		return fmt.Errorf("encoding the patch of %s %s: %w", resource.Resource, live.GetName(), err)
	}
	_, err = client.Resource(resource).Namespace(live.GetNamespace()).Patch(ctx, live.GetName(), types.MergePatchType, body, metav1.PatchOptions{})
	if err = notFoundIsNil(err); err != nil {
		return fmt.Errorf("patching %s %s: %w", resource.Resource, live.GetName(), err)
	}
	return nil
}

// list reads all objects; a kind that is not served has none.
func list(ctx context.Context, client dynamic.Interface, resource schema.GroupVersionResource, o metav1.ListOptions) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	o.Limit = 500
	for {
		page, err := client.Resource(resource).List(ctx, o)
		if apierrors.IsNotFound(err) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("listing %s: %w", resource.Resource, err)
		}
		for i := range page.Items {
			out = append(out, &page.Items[i])
		}
		if o.Continue = page.GetContinue(); o.Continue == "" {
			return out, nil
		}
	}
}

func notFoundIsNil(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// poll calls f until it returns true or fails, or ctx ends.
func poll(ctx context.Context, f func() (bool, error)) error {
	tick := time.NewTicker(agentPoll)
	defer tick.Stop()
	for {
		done, err := f()
		if done || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
