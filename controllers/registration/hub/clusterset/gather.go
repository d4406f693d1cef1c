// SPDX-License-Identifier: Apache-2.0

package clusterset

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1beta2 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta2"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/manager"
)

// gather reads one set and counts its members.
func (c *Controller) gather(ctx context.Context, name string) (State, error) {
	s := State{Name: name, Own: c.config.Own && isOwn(name), Now: c.config.Clock.Now(), Written: c.lastWrite(name)}
	set := &clusterv1beta2.ManagedClusterSet{}
	err := c.reader.Get(ctx, client.ObjectKey{Name: name}, set)
	if apierrors.IsNotFound(err) {
		return s, nil
	}
	if err != nil {
		return s, fmt.Errorf("reading managedclusterset %s: %w", name, err)
	}
	s.Set = set
	member, invalid := Member(set)
	if s.Invalid = invalid; s.Invalid != nil {
		return s, nil //nolint:nilerr // a bad selector is the set's condition, not a fault of this pass
	}
	clusters := &clusterv1.ManagedClusterList{}
	if err := c.reader.List(ctx, clusters, manager.NotCopied); err != nil {
		return s, fmt.Errorf("counting the members of set %s: %w", name, err)
	}
	for i := range clusters.Items {
		if member(clusters.Items[i].Labels) {
			s.Members++
		}
	}
	return s, nil
}

func isOwn(name string) bool {
	return name == clusterv1beta2.DefaultClusterSet || name == clusterv1beta2.GlobalClusterSet
}
