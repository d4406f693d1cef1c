// SPDX-License-Identifier: Apache-2.0

package replicaset

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"

	workv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// index holds the keys that belong to others.
type index map[reconcile.Key]sets.Set[reconcile.Key]

func (x index) add(to, key reconcile.Key) {
	if x[to] == nil {
		x[to] = sets.Set[reconcile.Key]{}
	}
	x[to].Insert(key)
}

func (x index) drop(from, key reconcile.Key) {
	if delete(x[from], key); len(x[from]) == 0 {
		delete(x, from)
	}
}

// users records which replica sets refer to a placement. The zero value is empty.
type users struct {
	mu          sync.Mutex
	byPlacement index
}

// changed records a change of a replica set; either may be nil.
func (u *users) changed(old, current *workv1alpha1.ManifestWorkReplicaSet) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.byPlacement == nil {
		u.byPlacement = index{}
	}
	if old != nil {
		for _, ref := range old.Spec.PlacementRefs {
			u.byPlacement.drop(reconcile.Key{Namespace: old.Namespace, Name: ref.Name}, reconcile.KeyOf(old))
		}
	}
	if current != nil {
		for _, ref := range current.Spec.PlacementRefs {
			u.byPlacement.add(reconcile.Key{Namespace: current.Namespace, Name: ref.Name}, reconcile.KeyOf(current))
		}
	}
}

// of returns the replica sets that refer to the placement, by name.
func (u *users) of(placement reconcile.Key) []reconcile.Key {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.SortedFunc(maps.Keys(u.byPlacement[placement]), func(a, b reconcile.Key) int { return strings.Compare(a.Name, b.Name) })
}
