// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// farewell is what this process knows of a cluster that goes, or that went.
type farewell struct {
	// cluster is its UID.
	cluster types.UID
	// shown is true when the caches have shown all that was there when it began to
	// go.
	shown bool
	// clear is true when nothing was left of it while it was still there.
	clear bool
	// gone is true when it went and may have left something: somebody stripped its
	// finalizers, or it never had them.
	gone bool
	// left are the objects that it left; nil until that was looked up. What else
	// comes waits for the next cluster of the name.
	left map[types.UID]bool
}

// farewells holds one farewell a name. The zero value is ready; its methods are
// safe for concurrent use.
type farewells struct {
	mu     sync.Mutex
	byName map[string]farewell
}

// of returns what is known of the cluster of the name that goes or went last.
func (f *farewells) of(name string) farewell {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.byName[name]
}

// note changes what is known of a cluster that is there. Of one that went
// meanwhile nothing is noted.
func (f *farewells) note(name string, cluster types.UID, change func(*farewell)) {
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
	f.set(name, known)
}

// went notes that a cluster is gone. One of which nothing was left needs no more
// attention: what is in its namespace from then on is not its own.
func (f *farewells) went(name string, cluster types.UID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if known := f.byName[name]; known.cluster == cluster && known.clear {
		delete(f.byName, name)
		return
	}
	f.set(name, farewell{cluster: cluster, gone: true})
}

// leave notes what a cluster that is gone left.
func (f *farewells) leave(name string, cluster types.UID, left map[types.UID]bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if known := f.byName[name]; known.gone && known.cluster == cluster {
		known.left = left
		f.set(name, known)
	}
}

// forget drops a cluster that is gone, unless another one of the name went since.
func (f *farewells) forget(name string, cluster types.UID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if known := f.byName[name]; known.gone && known.cluster == cluster {
		delete(f.byName, name)
	}
}

// came notes that there is a cluster of the name: what an earlier one left is its
// own now.
func (f *farewells) came(name string, cluster types.UID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.byName[name].cluster != cluster {
		delete(f.byName, name)
	}
}

// set holds the lock already.
func (f *farewells) set(name string, known farewell) {
	if f.byName == nil {
		f.byName = map[string]farewell{}
	}
	f.byName[name] = known
}
