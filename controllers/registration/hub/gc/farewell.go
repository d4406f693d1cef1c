// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// farewell is what this process knows of a cluster that is being deleted or is gone.
type farewell struct {
	// cluster is its UID.
	cluster types.UID
	// shown is true once the caches have shown everything that existed when the deletion
	// began.
	shown bool
	// clear is true when nothing was left of it while it still existed.
	clear bool
	// gone is true when it is gone and may have left objects: its finalizers were stripped,
	// or it never had them.
	gone bool
	// left are the objects it left; nil until they were looked up. Objects created later
	// belong to the next cluster of that name.
	left map[types.UID]bool
}

// farewells holds one farewell per name. Its methods are safe for concurrent use.
type farewells struct {
	mu     sync.Mutex
	byName map[string]farewell
}

// get returns what is known of the cluster of that name that is being deleted or went last.
func (f *farewells) get(name string) farewell {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.byName[name]
}

// update updates what is known of a cluster that exists. It does nothing for one that has gone
// in the meantime.
func (f *farewells) update(name string, cluster types.UID, change func(*farewell)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	known := f.byName[name]
	if known.gone {
		return
	}
	if known.cluster != cluster {
		known = farewell{cluster: cluster}
	}
	change(&known)
	f.byName[name] = known
}

// recordGone records that a cluster is gone. If nothing was left of it, it is forgotten: what
// appears in its namespace from then on is not its own.
func (f *farewells) recordGone(name string, cluster types.UID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if known := f.byName[name]; known.cluster == cluster && known.clear {
		delete(f.byName, name)
		return
	}
	f.byName[name] = farewell{cluster: cluster, gone: true}
}

// recordLeft records what a cluster that is gone left behind.
func (f *farewells) recordLeft(name string, cluster types.UID, left map[types.UID]bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if known := f.byName[name]; known.gone && known.cluster == cluster {
		known.left = left
		f.byName[name] = known
	}
}

// forget drops a cluster that is gone, unless another one of that name has gone since.
func (f *farewells) forget(name string, cluster types.UID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if known := f.byName[name]; known.gone && known.cluster == cluster {
		delete(f.byName, name)
	}
}

// recordNew records that a cluster of that name exists: what an earlier one left now belongs to
// it.
func (f *farewells) recordNew(name string, cluster types.UID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.byName[name].cluster != cluster {
		delete(f.byName, name)
	}
}
