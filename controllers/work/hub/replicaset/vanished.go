// SPDX-License-Identifier: Apache-2.0

package replicaset

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	workv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// takenRecently is how long after a replica set got its finalizer a deletion may still be under
// way in an API server that has read the set without it.
const takenRecently = time.Minute

var setsResource = workv1alpha1.GroupVersion.WithResource("manifestworkreplicasets")

// taken remembers which replica sets got their finalizer a moment ago. An API server that has read
// an object without finalizers deletes it, even if it gets one before the deletion is carried out.
// Such a set is gone without ever being seen as deleting, and what was just created for it would
// stay on its clusters. The zero value is empty.
type taken struct {
	mu sync.Mutex
	// at is when a set got its finalizer, and vanished are the sets that went this way.
	at       map[types.UID]time.Time
	vanished map[reconcile.Key]bool
}

// isNew reports whether a set gets its finalizer for the first time. A set that was reported on
// before had one: whoever took it off may want to delete the set and keep its works.
func isNew(set *workv1alpha1.ManifestWorkReplicaSet) bool {
	return set.DeletionTimestamp == nil && len(set.Status.Conditions) == 0 &&
		!slices.Contains(set.Finalizers, workv1alpha1.FinalizerManifestWorkReplicaSet)
}

// note records that a set gets its finalizer now.
func (t *taken) note(set types.UID, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.at == nil {
		t.at, t.vanished = map[types.UID]time.Time{}, map[reconcile.Key]bool{}
	}
	maps.DeleteFunc(t.at, func(_ types.UID, at time.Time) bool { return now.Sub(at) >= takenRecently })
	t.at[set] = now
}

// gone records that a set is gone, and reports whether it vanished. What was deleting is not:
// whoever takes the finalizer off such a set wants its works to stay.
func (t *taken) gone(set *workv1alpha1.ManifestWorkReplicaSet, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	at, noted := t.at[set.UID]
	if !noted || set.DeletionTimestamp != nil || now.Sub(at) >= takenRecently {
		return false
	}
	t.vanished[reconcile.KeyOf(set)] = true
	return true
}

func (t *taken) isVanished(set reconcile.Key) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.vanished[set]
}

func (t *taken) cleared(set reconcile.Key) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.vanished, set)
}

// clearVanished deletes the works of a set that vanished, unless there is one of its name again,
// which takes them over.
func (c *Controller) clearVanished(ctx context.Context, set reconcile.Key) error {
	if !c.taken.isVanished(set) {
		return nil
	}
	_, err := c.client.Resource(setsResource).Namespace(set.Namespace).Get(ctx, set.Name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading manifestworkreplicaset %s: %w", set, err)
	}
	if err != nil {
		works, err := c.live(ctx, set)
		if err != nil {
			return err
		}
		var failures []error
		for _, w := range works {
			failures = append(failures, reconcile.Delete(ctx, c.client,
				reconcile.Target{Resource: worksResource, Namespace: w.Cluster, Name: w.Name, UID: w.UID}))
		}
		if err := errors.Join(failures...); err != nil {
			return err
		}
	}
	c.taken.cleared(set)
	return nil
}
