// SPDX-License-Identifier: Apache-2.0

package replicaset

import (
	"maps"
	"slices"
	"strings"
	"sync"

	workv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// users records which replica sets refer to a placement. The zero value is empty.
type users struct {
	mu          sync.Mutex
	byPlacement map[reconcile.Key]map[reconcile.Key]bool
}

// changed records a change of a replica set; either may be nil.
func (u *users) changed(old, current *workv1alpha1.ManifestWorkReplicaSet) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.byPlacement == nil {
		u.byPlacement = map[reconcile.Key]map[reconcile.Key]bool{}
	}
	if old != nil {
		for _, ref := range old.Spec.PlacementRefs {
			placement := reconcile.Key{Namespace: old.Namespace, Name: ref.Name}
			delete(u.byPlacement[placement], reconcile.Key{Namespace: old.Namespace, Name: old.Name})
			if len(u.byPlacement[placement]) == 0 {
				delete(u.byPlacement, placement)
			}
		}
	}
	if current != nil {
		for _, ref := range current.Spec.PlacementRefs {
			placement := reconcile.Key{Namespace: current.Namespace, Name: ref.Name}
			if u.byPlacement[placement] == nil {
				u.byPlacement[placement] = map[reconcile.Key]bool{}
			}
			u.byPlacement[placement][reconcile.Key{Namespace: current.Namespace, Name: current.Name}] = true
		}
	}
}

// of returns the replica sets that refer to the placement, by name.
func (u *users) of(placement reconcile.Key) []reconcile.Key {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.SortedFunc(maps.Keys(u.byPlacement[placement]), func(a, b reconcile.Key) int { return strings.Compare(a.Name, b.Name) })
}
