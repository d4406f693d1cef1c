// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	// maxBodies bounds what a pass holds of the objects that it looked at, in
	// bytes as weigh tells them; what is over that is read once more when its turn
	// comes. Works of common objects stay far below.
	maxBodies = 8 << 20
	// nodeWeight is about what a value takes in memory beside its text.
	nodeWeight = 32
)

// bodies are the objects that the looks of one pass found, by task.
type bodies struct {
	mu     sync.Mutex
	weight int
	live   []*unstructured.Unstructured
	again  []bool
}

func newBodies(n int) *bodies {
	return &bodies{live: make([]*unstructured.Unstructured, n), again: make([]bool, n)}
}

// keep holds what a look found, nil for nothing, as long as there is room.
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

// found tells whether a look found an object, held or not.
func (b *bodies) found(i int) bool { return b.live[i] != nil || b.again[i] }

// take gives what a look found, and reads it anew where there was no room for
// it. It is held no longer.
func (b *bodies) take(i int, read func() (*unstructured.Unstructured, error)) (*unstructured.Unstructured, error) {
	if b.again[i] {
		return read()
	}
	live := b.live[i]
	b.live[i] = nil
	return live, nil
}

// weigh tells about how many bytes a decoded value takes in memory.
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
