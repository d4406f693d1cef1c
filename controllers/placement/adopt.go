// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// adopting is a client that treats an AlreadyExists error on creating a decision as a
// conflict: the view was behind. It reads the existing object and adds it to the view, so
// that the next pass continues from it, whenever the watch delivers it.
type adopting struct {
	dynamic.Interface
	seen func(reconcile.Target, *unstructured.Unstructured)
}

// Resource implements dynamic.Interface.
func (a adopting) Resource(resource schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	all := a.Interface.Resource(resource)
	if resource != decisionsResource {
		return all
	}
	return adoptingAll{all, a.seen}
}

type adoptingAll struct {
	dynamic.NamespaceableResourceInterface
	seen func(reconcile.Target, *unstructured.Unstructured)
}

// Namespace implements dynamic.NamespaceableResourceInterface.
func (a adoptingAll) Namespace(namespace string) dynamic.ResourceInterface {
	return adoptingOne{a.NamespaceableResourceInterface.Namespace(namespace), a.seen}
}

type adoptingOne struct {
	dynamic.ResourceInterface
	seen func(reconcile.Target, *unstructured.Unstructured)
}

// Create implements dynamic.ResourceInterface.
func (a adoptingOne) Create(
	ctx context.Context, o *unstructured.Unstructured, options metav1.CreateOptions, subresources ...string,
) (*unstructured.Unstructured, error) {
	made, err := a.ResourceInterface.Create(ctx, o, options, subresources...)
	if !apierrors.IsAlreadyExists(err) {
		return made, err
	}
	there, readErr := a.Get(ctx, o.GetName(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(readErr): // gone again
	case readErr != nil:
		return nil, errors.Join(err, readErr)
	default:
		a.seen(reconcile.Target{Resource: decisionsResource, Namespace: there.GetNamespace(), Name: o.GetName()}, there)
	}
	return nil, apierrors.NewConflict(decisionsResource.GroupResource(), o.GetName(), err)
}
