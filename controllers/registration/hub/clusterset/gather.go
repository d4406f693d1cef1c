// SPDX-License-Identifier: Apache-2.0

package clusterset

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	clusterv1beta2 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta2"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// gather reads one set from the cache and its size from the index.
func (c *Controller) gather(ctx context.Context, name string) (State, error) {
	s := State{Name: name, Own: c.config.Own && isOwn(name), Now: c.config.Clock.Now(), Written: c.lastWrite(name)}
	set := &clusterv1beta2.ManagedClusterSet{}
	err := c.reader.Get(ctx, reconcile.Key{Name: name}, set)
	if apierrors.IsNotFound(err) {
		return s, nil
	}
	if err != nil {
		return s, fmt.Errorf("reading managedclusterset %s: %w", name, err)
	}
	s.Set = set
	s.Members, s.Invalid = c.config.Index.Size(name)
	return s, nil
}

func isOwn(name string) bool {
	return name == clusterv1beta2.DefaultClusterSet || name == clusterv1beta2.GlobalClusterSet
}
