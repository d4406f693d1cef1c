// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"context"

	"k8s.io/client-go/dynamic"

	"github.com/kubectl-ocm/kubectl-ocm/internal/manager"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/teardown"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// removal is the id of the loop that removes profiles; everything is its only key.
const (
	removal    = "cluster.profile-removal"
	everything = "all"
)

// Remove adds to m a loop that deletes this project's profiles once, for when the gate is
// off. Failures are retried.
func Remove(m *manager.Manager, c dynamic.Interface) {
	queue := reconcile.NewQueue(removal)
	queue.Add(reconcile.Key{Name: everything})
	m.Add(reconcile.Loop{Name: removal, Reconcile: func(ctx context.Context, _ reconcile.Key) (reconcile.Result, error) {
		return reconcile.Result{}, teardown.Profiles(ctx, c)
	}}, queue)
}
