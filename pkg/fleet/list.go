// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// query names objects to list.
type query struct {
	resource  schema.GroupVersionResource
	namespace string
	labels    string
	fields    string
}

// listLimit bounds one answer. Fleets of some thousand clusters come in one.
const listLimit = 10000

// listAll lists what q names. A kind that is not served has no objects.
func listAll(ctx context.Context, c *Cluster, q query) ([]unstructured.Unstructured, error) {
	o := metav1.ListOptions{LabelSelector: q.labels, FieldSelector: q.fields, Limit: listLimit}
	var out []unstructured.Unstructured
	for {
		page, err := c.Client.Resource(q.resource).Namespace(q.namespace).List(ctx, o)
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		out = append(out, page.Items...)
		if o.Continue = page.GetContinue(); o.Continue == "" {
			return out, nil
		}
	}
}

// remove deletes exactly the object that was read; one that is gone is fine.
func remove(ctx context.Context, c *Cluster, u *unstructured.Unstructured) error {
	uid := u.GetUID()
	policy := metav1.DeletePropagationBackground
	o := metav1.DeleteOptions{PropagationPolicy: &policy}
	if uid != "" {
		o.Preconditions = &metav1.Preconditions{UID: &uid}
	}
	err := c.Client.Resource(resourceOf(u)).Namespace(u.GetNamespace()).Delete(ctx, u.GetName(), o)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
