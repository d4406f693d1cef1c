// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"crypto/sha256"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// appliedCache remembers the last apply of each object: what was intended and
// the version that it left, as half of a SHA-256. It makes a pass that changes
// nothing free of requests, and costs about 50 bytes an object.
type appliedCache struct {
	mu   sync.Mutex
	last map[digest]digest
}

// digest stands for what was hashed: 16 bytes of a SHA-256.
type digest [16]byte

func digestOf(parts ...string) digest {
	h := sha256.New()
	for _, part := range parts {
		_, _ = h.Write([]byte(part))
		_, _ = h.Write([]byte{0})
	}
	var out digest
	copy(out[:], h.Sum(nil))
	return out
}

type appliedKey struct {
	resource schema.GroupVersionResource
	key      Key
}

func (k appliedKey) digest() digest {
	return digestOf(k.resource.Group, k.resource.Version, k.resource.Resource, k.key.Namespace, k.key.Name)
}

func (c *appliedCache) unchanged(k appliedKey, intent []byte, liveVersion string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	last, ok := c.last[k.digest()]
	return ok && liveVersion != "" && last == digestOf(liveVersion, string(intent))
}

func (c *appliedCache) remember(k appliedKey, intent []byte, version string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last == nil {
		c.last = map[digest]digest{}
	}
	c.last[k.digest()] = digestOf(version, string(intent))
}

// forget drops an object that was deleted, or the cache would grow with every
// object that ever was.
func (c *appliedCache) forget(k appliedKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.last, k.digest())
}
