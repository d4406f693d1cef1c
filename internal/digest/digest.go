// SPDX-License-Identifier: Apache-2.0

// Package digest tells values apart without keeping them: 16 bytes stand for each.
package digest

import (
	"crypto/sha256"
	"encoding/json"
)

// Sum is the first half of a SHA-256. The zero Sum stands for nothing.
type Sum [16]byte

// Of digests the JSON of a value. A value that has none gives the zero Sum.
func Of(value any) Sum {
	raw, err := json.Marshal(value)
	if err != nil {
		return Sum{}
	}
	return OfBytes(raw)
}

// OfBytes digests bytes as they are.
func OfBytes(raw []byte) Sum {
	full := sha256.Sum256(raw)
	return Sum(full[:len(Sum{})])
}

// OfParts digests texts one after the other. No two lists of texts without zero
// bytes give the same input.
func OfParts(parts ...string) Sum {
	h := sha256.New()
	for _, part := range parts {
		_, _ = h.Write([]byte(part))
		_, _ = h.Write([]byte{0})
	}
	return Sum(h.Sum(nil)[:len(Sum{})])
}
