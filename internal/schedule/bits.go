// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"iter"
	mathbits "math/bits"
)

// bits is a set of cluster slots.
type bits []uint64

const wordBits = 64

func (b bits) has(slot uint32) bool {
	word := slot / wordBits
	return int(word) < len(b) && b[word]&(1<<(slot%wordBits)) != 0
}

func (b *bits) set(slot uint32) {
	word := int(slot / wordBits)
	b.grow(word + 1)
	(*b)[word] |= 1 << (slot % wordBits)
}

func (b bits) clear(slot uint32) {
	if word := slot / wordBits; int(word) < len(b) {
		b[word] &^= 1 << (slot % wordBits)
	}
}

func (b *bits) assign(slot uint32, in bool) {
	if in {
		b.set(slot)
	} else {
		b.clear(slot)
	}
}

func (b *bits) grow(words int) {
	for len(*b) < words {
		*b = append(*b, 0)
	}
}

// add adds all slots of another set.
func (b *bits) add(other bits) {
	b.grow(len(other))
	for i, word := range other {
		(*b)[i] |= word
	}
}

// remove removes all slots of another set.
func (b bits) remove(other bits) {
	for i := range min(len(b), len(other)) {
		b[i] &^= other[i]
	}
}

func (b bits) count() int {
	n := 0
	for _, word := range b {
		n += mathbits.OnesCount64(word)
	}
	return n
}

// equal reports whether two sets hold the same slots.
func (b bits) equal(other bits) bool {
	for i := range max(len(b), len(other)) {
		if b.word(i) != other.word(i) {
			return false
		}
	}
	return true
}

func (b bits) word(i int) uint64 {
	if i < len(b) {
		return b[i]
	}
	return 0
}

// slotOf returns the lowest slot of a word at index place; word must not be 0.
func slotOf(place int, word uint64) uint32 {
	return uint32(place*wordBits + mathbits.TrailingZeros64(word)) //nolint:gosec // there are not so many clusters
}

// all returns the slots in ascending order.
func (b bits) all() iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		for i, word := range b {
			for word != 0 {
				if !yield(slotOf(i, word)) {
					return
				}
				word &= word - 1
			}
		}
	}
}
