// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// Query names objects to list.
type Query struct {
	// Resource is their kind.
	Resource schema.GroupVersionResource
	// Namespace is where they are; empty means everywhere.
	Namespace string
	// Labels and Fields are selectors; empty means all.
	Labels, Fields string
}

// Wanted is one of several lists that are read in parallel.
type Wanted struct {
	into *[]unstructured.Unstructured
	Query
}

// Into returns a Wanted that reads the list named by q into items.
func Into(items *[]unstructured.Unstructured, q Query) Wanted { return Wanted{items, q} }

// ListTogether reads several lists in parallel.
func ListTogether(ctx context.Context, c *Cluster, all ...Wanted) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, one := range all {
		group.Go(func() (err error) {
			*one.into, err = ListAll(ctx, c, one.Query)
			return Explain("listing "+one.Resource.Resource, c, err)
		})
	}
	return group.Wait()
}

// listLimit is the page size of a list. Fleets of some thousand clusters fit in one page.
const listLimit = 10000

// ListAll lists what q names. A kind that is not served has no objects.
func ListAll(ctx context.Context, c *Cluster, q Query) ([]unstructured.Unstructured, error) {
	o := metav1.ListOptions{LabelSelector: q.Labels, FieldSelector: q.Fields, Limit: listLimit}
	var out []unstructured.Unstructured
	for u, err := range typed.All(ctx, c.Client.Resource(q.Resource).Namespace(q.Namespace), o) {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		out = append(out, *u)
	}
	return out, nil
}

// metadataOnly is the media type with which an API server sends the metadata of objects without the rest.
const metadataOnly = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"

// ListMetadata lists the metadata of what q names. Nothing else is sent, which is a small part of
// works, and nothing secret of Secrets. A kind that is not served has no objects.
func ListMetadata(ctx context.Context, c *Cluster, q Query) ([]metav1.PartialObjectMetadata, error) {
	path := []string{"/apis", q.Resource.Group, q.Resource.Version}
	if q.Resource.Group == "" {
		path = []string{"/api", q.Resource.Version}
	}
	var out []metav1.PartialObjectMetadata
	for next := ""; ; {
		request := c.raw.Get().AbsPath(path...).NamespaceIfScoped(q.Namespace, q.Namespace != "").Resource(q.Resource.Resource).
			SetHeader("Accept", metadataOnly).Param("limit", strconv.Itoa(listLimit))
		for name, value := range map[string]string{"labelSelector": q.Labels, "fieldSelector": q.Fields, "continue": next} {
			if value != "" {
				request.Param(name, value)
			}
		}
		raw, err := request.Do(ctx).Raw()
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		var page metav1.PartialObjectMetadataList
		if err := json.Unmarshal(raw, &page); err != nil {
			return nil, fmt.Errorf("reading the list of %s: %w", q.Resource.Resource, err)
		}
		out = append(out, page.Items...)
		if next = page.Continue; next == "" {
			return out, nil
		}
	}
}
