// SPDX-License-Identifier: Apache-2.0

package addonkit

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// SpecHash returns the hash of a configuration's content: of the object as the API server
// holds it, without apiVersion, kind, metadata and status, as compact JSON with sorted
// keys, in lower-case hexadecimal. Add-ons compare it, so object must never have gone
// through a Go type, which may add or drop fields.
func SpecHash(object map[string]any) (string, error) {
	said := make(map[string]any, len(object))
	for key, value := range object {
		switch key {
		case "apiVersion", "kind", "metadata", "status":
		default:
			said[key] = value
		}
	}
	raw, err := json.Marshal(said)
	if err != nil {
		return "", fmt.Errorf("encoding a configuration: %w", err)
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:]), nil
}
