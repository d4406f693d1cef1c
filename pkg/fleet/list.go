// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"

	"golang.org/x/sync/errgroup"
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

// wanted is one of several lists that are read at a time.
type wanted struct {
	into *[]unstructured.Unstructured
	query
}

// listTogether reads several lists at a time.
func listTogether(ctx context.Context, c *Cluster, all ...wanted) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, one := range all {
		group.Go(func() (err error) {
			*one.into, err = listAll(ctx, c, one.query)
			return explain("listing "+one.resource.Resource, c, err)
		})
	}
	return group.Wait()
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
