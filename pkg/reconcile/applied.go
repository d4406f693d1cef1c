// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"crypto/sha256"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// appliedCache remembers the last apply of each object: what was intended and
// the version that it left. It makes a pass that changes nothing free of
// requests, and costs about 150 bytes an object.
type appliedCache struct {
	mu   sync.Mutex
	last map[appliedKey]appliedEntry
}

type appliedKey struct {
	resource schema.GroupVersionResource
	key      Key
}

type appliedEntry struct {
	intent  [sha256.Size]byte
	version string
}

func (c *appliedCache) unchanged(k appliedKey, intent []byte, liveVersion string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.last[k]
	return ok && liveVersion != "" && e.version == liveVersion && e.intent == sha256.Sum256(intent)
}

func (c *appliedCache) remember(k appliedKey, intent []byte, version string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last == nil {
		c.last = map[appliedKey]appliedEntry{}
	}
	c.last[k] = appliedEntry{sha256.Sum256(intent), version}
}

// forget drops an object that was deleted, or the cache would grow with every
// object that ever was.
func (c *appliedCache) forget(k appliedKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.last, k)
}
