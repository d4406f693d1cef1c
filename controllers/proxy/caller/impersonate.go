// SPDX-License-Identifier: Apache-2.0

package caller

import (
	"fmt"
	"net/http"
	"strings"
)

// Headers by which an API server lets a client act for somebody else.
const (
	impersonateUser  = "Impersonate-User"
	impersonateUID   = "Impersonate-Uid"
	impersonateGroup = "Impersonate-Group"
	impersonateExtra = "Impersonate-Extra-"
)

// Impersonate writes the identity to the headers of a request to the API server of the managed
// cluster. The headers must have none of these before.
func (c Caller) Impersonate(h http.Header) {
	h.Set(impersonateUser, c.User)
	if c.UID != "" {
		h.Set(impersonateUID, c.UID)
	}
	for _, g := range c.Groups {
		h.Add(impersonateGroup, g)
	}
	for key, values := range c.Extra {
		for _, v := range values {
			h.Add(impersonateExtra+escaped(key), v)
		}
	}
}

// escaped encodes a key for the name of a header, which API servers turn to lower case before
// they decode it.
func escaped(key string) string {
	var out strings.Builder
	for _, b := range []byte(key) {
		if b >= 'a' && b <= 'z' || b >= '0' && b <= '9' || b == '-' || b == '_' || b == '.' {
			out.WriteByte(b)
			continue
		}
		fmt.Fprintf(&out, "%%%02x", b)
	}
	return out.String()
}
