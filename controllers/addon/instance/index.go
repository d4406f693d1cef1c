// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"k8s.io/client-go/dynamic"

	"github.com/kubectl-ocm/kubectl-ocm/internal/manager"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
)

// Index caches all ManagedClusterAddOns and their works. Its methods are safe for concurrent
// use.
type Index struct {
	words   *words
	owner   string
	addons  *watch.Collection[AddOn]
	works   *watch.Collection[Work]
	changed []func(name string)
	// instances are called for changes of instances only.
	instances []func(reconcile.Key)

	mu sync.Mutex
	// clusters holds the clusters of each add-on, owners the add-on of each work, worksOf the
	// works of each add-on of a cluster.
	clusters map[string]map[string]bool
	owners   map[reconcile.Key]reconcile.Key
	worksOf  map[reconcile.Key]map[reconcile.Key]bool
}

// New returns an Index that is empty until m runs. owner is the field manager of AddOn.Given.
func New(m *manager.Manager, client dynamic.Interface, owner string) *Index {
	x := &Index{
		words: &words{}, owner: owner,
		clusters: map[string]map[string]bool{}, owners: map[reconcile.Key]reconcile.Key{}, worksOf: map[reconcile.Key]map[reconcile.Key]bool{},
	}
	x.addons = watch.New(watch.Options[AddOn]{Client: client, Resource: Resource, Keep: x.keep, Same: same})
	x.addons.OnChange(x.addonChanged)
	x.works = watch.New(watch.Options[Work]{
		Client: client, Resource: worksResource, LabelSelector: addonv1alpha1.LabelAddOnName, Keep: x.keepWork,
		Same: func(before, now Work) bool { return before == now },
	})
	x.works.OnChange(x.workChanged)
	m.AddTask(x.addons.Run)
	m.AddTask(x.works.Run)
	return x
}

// OnChange registers a function that is called with the name of an add-on when one of its
// instances or works is created, changed or deleted. OnChange must be called before the
// manager runs, and the function must not block.
func (x *Index) OnChange(f func(name string)) { x.changed = append(x.changed, f) }

// OnInstance registers a function that is called with the key of each instance that is
// created, changed or deleted. OnInstance must be called before the manager runs, and the
// function must not block.
func (x *Index) OnInstance(f func(reconcile.Key)) { x.instances = append(x.instances, f) }

func (x *Index) notify(name string) {
	for _, f := range x.changed {
		f(name)
	}
}

func (x *Index) addonChanged(key reconcile.Key) {
	_, there := x.addons.Get(key)
	x.mu.Lock()
	SetMember(x.clusters, key.Name, key.Namespace, there)
	x.mu.Unlock()
	x.notify(key.Name)
	for _, f := range x.instances {
		f(key)
	}
}

func (x *Index) workChanged(work reconcile.Key) {
	now, there := x.works.Get(work)
	x.mu.Lock()
	before, had := x.owners[work]
	if had && (!there || before != now.owner) {
		delete(x.owners, work)
		SetMember(x.worksOf, before, work, false)
	}
	if there {
		x.owners[work] = now.owner
		SetMember(x.worksOf, now.owner, work, true)
	}
	x.mu.Unlock()
	if had {
		x.notify(before.Name)
	}
	if there && before.Name != now.owner.Name {
		x.notify(now.owner.Name)
	}
}

// SetMember adds an item to the set sets[of], or removes it, depending on there.
func SetMember[A, B comparable](sets map[A]map[B]bool, of A, item B, there bool) {
	switch {
	case !there:
		delete(sets[of], item)
		if len(sets[of]) == 0 {
			delete(sets, of)
		}
	case sets[of] == nil:
		sets[of] = map[B]bool{item: true}
	default:
		sets[of][item] = true
	}
}

// WaitInstances waits until all instances are cached, not necessarily their works.
func (x *Index) WaitInstances(ctx context.Context) error { return x.addons.WaitSynced(ctx) }

// WaitSynced waits until all instances and works are cached.
func (x *Index) WaitSynced(ctx context.Context) error {
	if err := x.addons.WaitSynced(ctx); err != nil {
		return err
	}
	return x.works.WaitSynced(ctx)
}

// Of returns the instances of an add-on, sorted by cluster.
func (x *Index) Of(name string) []AddOn {
	x.mu.Lock()
	keys := make([]reconcile.Key, 0, len(x.clusters[name]))
	for cluster := range x.clusters[name] {
		keys = append(keys, reconcile.Key{Namespace: cluster, Name: name})
	}
	x.mu.Unlock()
	out := make([]AddOn, 0, len(keys))
	for _, key := range keys {
		if a, ok := x.addons.Get(key); ok {
			out = append(out, a)
		}
	}
	slices.SortFunc(out, func(a, b AddOn) int { return cmp.Compare(a.Cluster, b.Cluster) })
	return out
}

// Get returns an instance; false if it does not exist.
func (x *Index) Get(key reconcile.Key) (AddOn, bool) { return x.addons.Get(key) }

// Works returns the works of an instance, in no particular order.
func (x *Index) Works(of reconcile.Key) []Work {
	x.mu.Lock()
	defer x.mu.Unlock()
	var out []Work
	for key := range x.worksOf[of] {
		if w, ok := x.works.Get(key); ok && w.owner == of {
			out = append(out, w)
		}
	}
	return out
}

// Naming returns the names of the add-ons with an instance that itself names the
// configuration, sorted.
func (x *Index) Naming(c addonv1alpha1.AddOnConfig) []string {
	var out []string
	for _, a := range x.addons.List() {
		if slices.Contains(a.Configs, c) {
			out = append(out, a.Name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
