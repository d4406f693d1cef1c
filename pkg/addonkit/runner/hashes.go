// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit/hashing"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
)

// hashes report to the hub the content of those configurations of an add-on that it does
// not read itself.
type hashes struct {
	kinds   map[addonv1alpha1.ConfigGroupResource]*watch.Collection[hashing.Content]
	queue   *reconcile.Queue
	execute *reconcile.Executor
}

// watchHashes watches configurations of these kinds, if any.
func (r *runner) watchHashes(kinds []schema.GroupVersionResource) {
	if len(kinds) == 0 {
		return
	}
	h := &hashes{
		kinds: map[addonv1alpha1.ConfigGroupResource]*watch.Collection[hashing.Content]{},
		queue: r.queue("config", r.Workers, r.reconcileHashes), execute: r.executor("config"),
	}
	r.addOns.OnChange(h.queue.Add)
	r.instances.OnChange(h.queue.Add)
	for _, kind := range kinds {
		all := watch.New(watch.Options[hashing.Content]{
			Client: r.Client, Resource: kind, Keep: hashed, Same: func(before, now hashing.Content) bool { return before == now },
		})
		named := addonv1alpha1.ConfigGroupResource{Group: kind.Group, Resource: kind.Resource}
		all.OnChange(func(key reconcile.Key) {
			r.hashed(addonv1alpha1.AddOnConfig{ConfigGroupResource: named, ConfigReferent: addonv1alpha1.ConfigReferent{Namespace: key.Namespace, Name: key.Name}})
		})
		h.kinds[named] = all
		r.watched = append(r.watched, all)
	}
	r.hashes = h
}

// hashed returns what is kept of a configuration.
func hashed(u *unstructured.Unstructured) (hashing.Content, bool) {
	hash, err := addonkit.SpecHash(u.Object)
	return hashing.Content{Hash: hash, Generation: u.GetGeneration()}, err == nil
}

// hashed queues whatever uses a configuration.
func (r *runner) hashed(at addonv1alpha1.AddOnConfig) {
	r.hashes.queue.Add(reconcile.Key{Name: r.addOn})
	r.instances.each(func(a *addonv1alpha1.ManagedClusterAddOn) bool {
		for _, ref := range a.Status.ConfigReferences {
			if d := ref.DesiredConfig; d != nil && ref.ConfigGroupResource == at.ConfigGroupResource && d.ConfigReferent == at.ConfigReferent {
				r.hashes.queue.Add(reconcile.KeyOf(a))
			}
		}
		return true
	})
}

// look is the hashing.Lookup of the watches.
func (h *hashes) look(at addonv1alpha1.AddOnConfig) (c hashing.Content, read, found bool) {
	all, read := h.kinds[at.ConfigGroupResource]
	if read {
		c, found = all.Get(reconcile.Key{Namespace: at.Namespace, Name: at.Name})
	}
	return c, read, found
}

// reconcileHashes reconciles an instance, or the add-on if the key has no namespace.
func (r *runner) reconcileHashes(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
	if key.Namespace == "" {
		addOn := r.addOns.get(key)
		if addOn == nil {
			return reconcile.Result{}, nil
		}
		return r.hashes.execute.Execute(ctx, addOn, hashing.Shared(addOn, r.hashes.look))
	}
	addOn := r.instances.get(key)
	if addOn == nil {
		return reconcile.Result{}, nil
	}
	return r.hashes.execute.Execute(ctx, addOn, hashing.Own(addOn, r.hashes.look))
}
