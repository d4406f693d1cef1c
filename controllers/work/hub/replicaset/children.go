// SPDX-License-Identifier: Apache-2.0

package replicaset

import (
	"sync"

	"k8s.io/client-go/dynamic"

	"github.com/kubectl-ocm/kubectl-ocm/internal/digest"
	workv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
)

// children holds all ManifestWorks of replica sets, by replica set. The cache of the hub
// holds the metadata of all works; this is a separate watch, only for those with the
// label.
type children struct {
	works *watch.Collection[kept]
	wake  func(reconcile.Key)

	mu      sync.Mutex
	owners  map[reconcile.Key]reconcile.Key
	byOwner index
}

func newChildren(client dynamic.Interface, wake func(reconcile.Key)) *children {
	c := &children{wake: wake, owners: map[reconcile.Key]reconcile.Key{}, byOwner: index{}}
	c.works = watch.New(watch.Options[kept]{
		Client: client, Resource: worksResource, LabelSelector: workv1alpha1.LabelManifestWorkReplicaSet, Keep: keep,
	})
	c.works.OnChange(c.changed)
	return c
}

// changed records which replica set a work belongs to, and wakes its former and its
// current one.
func (c *children) changed(work reconcile.Key) {
	now, there := c.works.Get(work)
	c.mu.Lock()
	before, had := c.owners[work]
	if had && (!there || before != now.owner) {
		delete(c.owners, work)
		c.byOwner.drop(before, work)
	}
	if there {
		c.owners[work] = now.owner
		c.byOwner.add(now.owner, work)
	}
	c.mu.Unlock()
	if had {
		c.wake(before)
	}
	if there && before != now.owner {
		c.wake(now.owner)
	}
}

// of returns the works of one replica set whose template has the hash.
func (c *children) of(set reconcile.Key, template digest.Sum) []Child {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []Child
	for work := range c.byOwner[set] {
		if k, ok := c.works.Get(work); ok && k.owner == set {
			k.child.Current = k.leaving || k.hash == template
			out = append(out, k.child)
		}
	}
	return out
}
