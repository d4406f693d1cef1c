// SPDX-License-Identifier: Apache-2.0

// Package digest compares values without keeping them: 16 bytes represent each.
package digest

import (
	"crypto/sha256"
	"encoding/json"
)

// Sum is the first half of a SHA-256. The zero Sum represents nothing.
type Sum [16]byte

// Of returns the digest of a value's JSON. A value that has none gives the zero Sum.
func Of(value any) Sum {
	raw, err := json.Marshal(value)
	if err != nil {
		return Sum{}
	}
	return OfBytes(raw)
}

// OfBytes returns the digest of the bytes.
func OfBytes(raw []byte) Sum {
	full := sha256.Sum256(raw)
	return Sum(full[:len(Sum{})])
}

// OfParts returns the digest of a list of texts. No two lists of texts without zero bytes
// give the same input.
func OfParts(parts ...string) Sum {
	h := sha256.New()
	for _, part := range parts {
		_, _ = h.Write([]byte(part))
		_, _ = h.Write([]byte{0})
	}
	return Sum(h.Sum(nil)[:len(Sum{})])
}
