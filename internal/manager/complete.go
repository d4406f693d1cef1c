// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// Complete reports whether what Reader returns contains every object of the kind of
// example that the API server now has in the namespace. Each kind has its own watch, so
// the deletion of an object may be seen before objects that were created in its namespace
// earlier. Call it before acting because nothing is left. A kind that is not served has
// no objects. It lists metadata, in pages.
func (m *Manager) Complete(ctx context.Context, example reconcile.Object, namespace string) (bool, error) {
	kind, s, err := reads{scheme: m.o.Scheme, stores: m.stores}.of(example)
	if err != nil {
		return false, fmt.Errorf("comparing with the API server: %w", err)
	}
	resource := reconcile.ResourceOf(kind)
	options := s.settings().query(metav1.ListOptions{Limit: pageSize})
	for {
		list, err := m.client.Resource(resource).Namespace(namespace).List(ctx, options)
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		if err != nil {
			return false, fmt.Errorf("comparing %s of %s with the API server: %w", resource.Resource, namespace, err)
		}
		for i := range list.Items {
			live := &list.Items[i]
			known := s.get(reconcile.Key{Namespace: live.Namespace, Name: live.Name})
			if known == nil || known.GetUID() != live.UID {
				return false, nil
			}
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return true, nil
		}
	}
}
