// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Right is what a caller may do with a kind of objects, in a namespace or everywhere. The
// resource may have a subresource: "serviceaccounts/token".
type Right struct {
	Resource  schema.GroupVersionResource
	Namespace string
	Verbs     []string
}

// MissingRights returns those of the rights that the caller does not have. It asks by reviews,
// of which nothing is stored.
func MissingRights(ctx context.Context, c *Cluster, rights []Right) ([]string, error) {
	var out []string
	for _, right := range rights {
		resource, part, _ := strings.Cut(right.Resource.Resource, "/")
		for _, verb := range right.Verbs {
			review := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"resourceAttributes": map[string]any{
				"group": right.Resource.Group, "resource": resource, "subresource": part, "namespace": right.Namespace, "verb": verb,
			}}}}
			review.SetGroupVersionKind(AccessReviews.GroupVersion().WithKind("SelfSubjectAccessReview"))
			answer, err := c.Client.Resource(AccessReviews).Create(ctx, review, metav1.CreateOptions{})
			if err != nil {
				return nil, fmt.Errorf("asking for rights: %w", err)
			}
			if allowed, _, _ := unstructured.NestedBool(answer.Object, "status", "allowed"); !allowed {
				out = append(out, verb+" "+right.Resource.Resource)
			}
		}
	}
	return out, nil
}
