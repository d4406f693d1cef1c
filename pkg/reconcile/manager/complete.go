// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// Complete tells whether what Reader returns holds every object of the kind of
// example that the API server has in the namespace now. Each kind comes by a watch
// of its own: that an object is being deleted may be seen before those that were
// made in its namespace earlier. Who acts because nothing is left asks here first.
// A kind that is not served has no objects. It lists metadata, in pages.
func (m *Manager) Complete(ctx context.Context, example client.Object, namespace string) (bool, error) {
	kind, err := apiutil.GVKForObject(example, m.o.Scheme)
	if err != nil {
		return false, fmt.Errorf("comparing %T with the API server: %w", example, err)
	}
	resource := reconcile.ResourceOf(kind)
	by, options := m.limits(kind), metav1.ListOptions{Limit: pageSize}
	if by.Label != nil {
		options.LabelSelector = by.Label.String()
	}
	if by.Field != nil {
		options.FieldSelector = by.Field.String()
	}
	for {
		list, err := m.client.Resource(resource).Namespace(namespace).List(ctx, options)
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		if err != nil {
			return false, fmt.Errorf("comparing %s of %s with the API server: %w", resource.Resource, namespace, err)
		}
		for i := range list.Items {
			if known, err := m.knows(ctx, example, &list.Items[i]); !known {
				return false, err
			}
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return true, nil
		}
	}
}

// knows tells whether Reader returns this very object.
func (m *Manager) knows(ctx context.Context, example client.Object, live *metav1.PartialObjectMetadata) (bool, error) {
	cached, _ := reflect.New(reflect.TypeOf(example).Elem()).Interface().(client.Object)
	cached.GetObjectKind().SetGroupVersionKind(example.GetObjectKind().GroupVersionKind())
	err := m.Reader().Get(ctx, client.ObjectKeyFromObject(live), cached, NotCopied)
	return err == nil && cached.GetUID() == live.UID, client.IgnoreNotFound(err)
}

// limits are those of Options.Kinds for a kind.
func (m *Manager) limits(kind schema.GroupVersionKind) cache.ByObject {
	var by cache.ByObject
	for o, limits := range m.o.Kinds {
		if m.isOf(o, kind) {
			by = limits
		}
	}
	return by
}
