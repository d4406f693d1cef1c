// SPDX-License-Identifier: Apache-2.0

package token

import (
	"encoding/base64"
	"testing"
)

// FuzzClaims: no token stops the program.
func FuzzClaims(f *testing.F) {
	for _, seed := range []string{"", "{}", "null", `{"aud":"a"}`, `{"aud":["a"]}`, `{"aud":{}}`, `{"exp":1e400}`, `{"jti":"a","exp":-1}`} {
		f.Add(seed, true)
	}
	f.Add("a.b.c", false)
	f.Fuzz(func(t *testing.T, text string, packed bool) {
		token := text
		if packed {
			token = "h." + base64.RawURLEncoding.EncodeToString([]byte(text)) + ".s"
		}
		said, err := claimsOf(token)
		id, idErr := credentialID(token)
		if err != nil && (idErr == nil || id != "") {
			t.Fatalf("a token whose claims cannot be read (%v) has the id %q", err, id)
		}
		if err == nil && said.ID == "" && id != "" {
			t.Fatalf("a token without an id has the id %q", id)
		}
	})
}
