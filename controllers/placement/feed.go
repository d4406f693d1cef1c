// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"
	"maps"

	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/kubectl-ocm/kubectl-ocm/internal/digest"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1alpha1"
	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
	clusterv1beta2 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta2"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// The caches call the functions here with the old and the new form of an object; old is
// nil for a new object, current for one that is gone.

// refreshClusters passes all clusters to the scheduler again, when placements read more
// of them than before.
func (f *fleet) refreshClusters() error {
	want := f.known
	for _, p := range f.placements {
		want = want.with(p)
	}
	if want == f.known {
		return nil
	}
	f.known = want
	return f.each(func(mc *clusterv1.ManagedCluster) { f.scheduler.SetCluster(want.of(mc)) })
}

func (f *fleet) clusterChanged(old, current *clusterv1.ManagedCluster) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.started || !f.known.clusters {
		return // refreshClusters reads them
	}
	if current == nil {
		f.scheduler.DeleteCluster(old.Name)
	} else {
		f.scheduler.SetCluster(f.known.of(current))
	}
	f.wake(settle)
}

func (f *fleet) setChanged(old, current *clusterv1beta2.ManagedClusterSet) {
	changed(f, current, f.scheduler.SetClusterSet, func() { f.scheduler.DeleteClusterSet(old.Name) })
}

func (f *fleet) bindingChanged(old, current *clusterv1beta2.ManagedClusterSetBinding) {
	changed(f, current, f.scheduler.SetBinding, func() { f.scheduler.DeleteBinding(reconcile.KeyOf(old)) })
}

func (f *fleet) scoreChanged(old, current *clusterv1alpha1.AddOnPlacementScore) {
	changed(f, current, f.scheduler.SetScore, func() { f.scheduler.DeleteScore(reconcile.KeyOf(old)) })
}

// changed passes an object on to the scheduler, or that it is gone.
func changed[T any](f *fleet, current *T, set func(*T), remove func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if current == nil {
		remove()
	} else {
		set(current)
	}
	f.wake(settle)
}

func (f *fleet) placementChanged(old, current *clusterv1beta1.Placement) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if current == nil {
		key := reconcile.KeyOf(old)
		delete(f.placements, key)
		delete(f.reported, key)
		f.scheduler.DeletePlacement(key)
		f.wake(0)
		return
	}
	key := reconcile.KeyOf(current)
	f.placements[key] = current
	f.scheduler.SetPlacement(current)
	if !f.started {
		return
	}
	if err := f.refreshClusters(); err != nil {
		f.queue.Add(key) // the next pass has the same view; there is always a cache of clusters
	}
	if old != nil && onlyStatus(old, current) && f.reported[key] == digest.Of(current.Status) {
		f.scheduler.Take() // this loop's own write
		return
	}
	f.wake(0)
	if old == nil || !onlyStatus(old, current) {
		// What failed before may succeed now; a status alone makes no difference.
		f.queue.Forget(key)
	}
	f.queue.Add(key)
}

// onlyStatus reports whether nothing but the status has changed.
func onlyStatus(old, current *clusterv1beta1.Placement) bool {
	return old.UID == current.UID && old.Generation == current.Generation && (old.DeletionTimestamp == nil) == (current.DeletionTimestamp == nil) &&
		maps.Equal(old.Annotations, current.Annotations)
}

func (f *fleet) decisionChanged(old, current *clusterv1beta1.PlacementDecision) {
	f.mu.Lock()
	defer f.mu.Unlock()
	o := cmp.Or(current, old)
	for _, p := range f.ownersOf(reconcile.KeyOf(o), o) {
		if late, writing := f.writing[p]; writing {
			// Whose change this is becomes known when the write returns.
			f.writing[p] = append(late, func() { f.observeDecision(old, current) })
			return
		}
	}
	f.observeDecision(old, current)
}

// isSuperseded reports whether a newer version of the object was already observed: events
// wait while a placement is being written.
func isSuperseded(before, current *clusterv1beta1.PlacementDecision) bool {
	return before != nil && current != nil && before.UID == current.UID &&
		before.ResourceVersion != current.ResourceVersion && !newer(current.ResourceVersion, before.ResourceVersion)
}

// observeDecision updates the view with a decision that the cache reports, unless it is
// what this process wrote.
func (f *fleet) observeDecision(old, current *clusterv1beta1.PlacementDecision) {
	o := cmp.Or(current, old)
	key := reconcile.KeyOf(o)
	before := f.objects[key]
	if isSuperseded(before, current) {
		return
	}
	news := f.isNews(key, old, current)
	if !news && (current == nil || before == nil || before.ResourceVersion != current.ResourceVersion) {
		return
	}
	f.storeDecision(key, current)
	if !news || sameDecision(before, current) {
		f.scheduler.Take() // the cache has caught up with this loop's own write
		return
	}
	delete(f.foreign, key)
	if f.started && current != nil {
		f.foreign[key] = struct{}{}
	}
	// The placement is reconciled even where the scheduler has no reason to: labels and
	// owners count too.
	for _, p := range append(f.ownersOf(key, o), f.ownersOf(key, before)...) {
		if f.started && f.placements[p] != nil {
			f.queue.Add(p)
		}
	}
	f.wake(0)
}

// begin and end enclose the writes for a placement.
func (f *fleet) begin(key reconcile.Key, status *clusterv1beta1.PlacementStatus) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.writing[key] = nil
	if f.placements[key] != nil {
		f.reported[key] = digest.Of(status)
	}
}

func (f *fleet) end(key reconcile.Key) {
	f.mu.Lock()
	defer f.mu.Unlock()
	late := f.writing[key]
	delete(f.writing, key)
	for _, observe := range late {
		observe()
	}
}

// sameDecision reports whether two forms of a decision are the same for this loop.
func sameDecision(a, b *clusterv1beta1.PlacementDecision) bool {
	return a != nil && b != nil && a.UID == b.UID && a.ResourceVersion != "" && maps.Equal(a.Labels, b.Labels) &&
		apiequality.Semantic.DeepEqual(a.OwnerReferences, b.OwnerReferences) && apiequality.Semantic.DeepEqual(a.Status, b.Status)
}
