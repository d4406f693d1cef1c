// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"context"

	"k8s.io/client-go/dynamic"

	"github.com/kubectl-ocm/kubectl-ocm/internal/manager"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/teardown"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// removal is the id of the loop that removes profiles, and everything its one
// key.
const (
	removal    = "cluster.profile-removal"
	everything = "all"
)

// Remove adds to m what takes away, once, the profiles of this project: the gate
// is off. What fails is tried again.
func Remove(m *manager.Manager, c dynamic.Interface) {
	queue := reconcile.NewQueue(removal)
	queue.Add(reconcile.Key{Name: everything})
	m.Add(reconcile.Loop{Name: removal, Reconcile: func(ctx context.Context, _ reconcile.Key) (reconcile.Result, error) {
		return reconcile.Result{}, teardown.Profiles(ctx, c)
	}}, queue)
}
