// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	// maxBodies bounds the objects that a pass keeps after reading them, in bytes as
	// estimated by weigh; what exceeds it is read again when its turn comes. Works of
	// common objects stay far below.
	maxBodies = 8 << 20
	// nodeWeight is roughly what a value takes in memory besides its text.
	nodeWeight = 32
)

// bodies are the objects that a pass has read, by task.
type bodies struct {
	mu     sync.Mutex
	weight int
	live   []*unstructured.Unstructured
	again  []bool
}

func newBodies(n int) *bodies {
	return &bodies{live: make([]*unstructured.Unstructured, n), again: make([]bool, n)}
}

// keep stores what was read, nil for no object, as long as there is room.
func (b *bodies) keep(i int, live *unstructured.Unstructured) {
	if live == nil {
		return
	}
	weight := weigh(live.Object)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.again[i] = b.weight+weight > maxBodies; b.again[i] {
		return
	}
	b.weight += weight
	b.live[i] = live
}

// found reports whether an object was found, stored or not.
func (b *bodies) found(i int) bool { return b.live[i] != nil || b.again[i] }

// take returns and drops what was read, and reads it again where there was no room to
// store it.
func (b *bodies) take(i int, read func() (*unstructured.Unstructured, error)) (*unstructured.Unstructured, error) {
	if b.again[i] {
		return read()
	}
	live := b.live[i]
	b.live[i] = nil
	return live, nil
}

// weigh estimates how many bytes a decoded value takes in memory.
func weigh(value any) int {
	sum := nodeWeight
	switch v := value.(type) {
	case string:
		sum += len(v)
	case []any:
		for _, each := range v {
			sum += weigh(each)
		}
	case map[string]any:
		for key, each := range v {
			sum += nodeWeight + len(key) + weigh(each)
		}
	}
	return sum
}
