// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"container/list"
	"sync"

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

const (
	// maxBodies bounds the manifests that stay in memory, in bytes. Raising it
	// lets drift of more works be repaired while the hub is away; lowering it
	// saves memory and costs a GET on the hub for each repair of a dropped work.
	maxBodies = 4 << 20
	// bodyOverhead is what a work takes beside its manifests, roughly.
	bodyOverhead = 4 << 10
)

// bodies holds whole works, the least recently used are dropped first.
type bodies struct {
	mu    sync.Mutex
	limit int
	size  int
	order *list.List
	items map[string]*list.Element
}

type bodyItem struct {
	work *workv1.ManifestWork
	size int
}

func newBodies(limit int) *bodies {
	return &bodies{limit: limit, order: list.New(), items: map[string]*list.Element{}}
}

// put keeps a work in place of an earlier version of it.
func (b *bodies) put(work *workv1.ManifestWork) {
	size := bodyOverhead
	for i := range work.Spec.Workload.Manifests {
		size += len(work.Spec.Workload.Manifests[i].Raw)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if e, ok := b.items[work.Name]; ok {
		if have := e.Value.(*bodyItem).work; have.UID == work.UID && older(work.ResourceVersion, have.ResourceVersion) {
			return
		}
	}
	b.remove(work.Name)
	if size > b.limit/2 {
		return
	}
	b.items[work.Name] = b.order.PushFront(&bodyItem{work: work, size: size})
	b.size += size
	for b.size > b.limit {
		b.remove(b.order.Back().Value.(*bodyItem).work.Name)
	}
}

// get is the work in exactly that version, or nil. It must not be changed.
func (b *bodies) get(name, version string) *workv1.ManifestWork {
	b.mu.Lock()
	defer b.mu.Unlock()
	e, ok := b.items[name]
	if !ok || e.Value.(*bodyItem).work.ResourceVersion != version {
		return nil
	}
	b.order.MoveToFront(e)
	return e.Value.(*bodyItem).work
}

func (b *bodies) drop(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.remove(name)
}

func (b *bodies) remove(name string) {
	e, ok := b.items[name]
	if !ok {
		return
	}
	b.size -= e.Value.(*bodyItem).size
	b.order.Remove(e)
	delete(b.items, name)
}
