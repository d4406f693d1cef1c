// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"sync"

	"github.com/kubectl-ocm/kubectl-ocm/internal/digest"
)

// appliedCache remembers the last apply of each object: the intent and the resulting
// resourceVersion, as half of a SHA-256. A pass that changes nothing then sends no
// requests, at about 50 bytes an object.
type appliedCache struct {
	mu   sync.Mutex
	last map[digest.Sum]digest.Sum
}

func (t Target) digest() digest.Sum {
	return digest.OfParts(t.Resource.Group, t.Resource.Version, t.Resource.Resource, t.Namespace, t.Name)
}

func (c *appliedCache) unchanged(t Target, intent []byte, liveVersion string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	last, ok := c.last[t.digest()]
	return ok && liveVersion != "" && last == digest.OfParts(liveVersion, string(intent))
}

func (c *appliedCache) remember(t Target, intent []byte, version string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last == nil {
		c.last = map[digest.Sum]digest.Sum{}
	}
	c.last[t.digest()] = digest.OfParts(version, string(intent))
}

// forget drops a deleted object, so that the cache does not grow with every object that
// ever existed.
func (c *appliedCache) forget(t Target) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.last, t.digest())
}
