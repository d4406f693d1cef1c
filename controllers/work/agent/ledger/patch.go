// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// patch sends a merge patch that is conditional on exactly this version of the object.
func patch[T any](ctx context.Context, api dynamic.ResourceInterface, object metav1.Object, body map[string]any, subresource ...string) (*T, error) {
	metadata, ok := body["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		body["metadata"] = metadata
	}
	metadata["uid"], metadata["resourceVersion"] = object.GetUID(), object.GetResourceVersion()
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("encoding the patch: %w", err)
	}
	live, err := api.Patch(ctx, object.GetName(), types.MergePatchType, raw, metav1.PatchOptions{FieldManager: manager}, subresource...)
	if err != nil {
		return nil, err
	}
	return typed.FromUnstructured[T](live)
}

// older reports whether version a is certainly before b.
func older(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}
