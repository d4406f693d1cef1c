// SPDX-License-Identifier: Apache-2.0

package token

import (
	"encoding/base64"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestARejectedTokenIsExplained(t *testing.T) {
	jwt := func(claims string) string {
		return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".x"
	}
	for name, tc := range map[string]struct{ token, says string }{
		"a bootstrap token": {"abcdef.0123456789abcdef", "it is wrong, expired or revoked, or belongs to another hub"},
		"no claims":         {jwt("{}"), "belongs to another hub"},
		"what is no JSON":   {jwt("x"), "belongs to another hub"},
		"its end":           {jwt(`{"exp":1785585600}`), "it ends at 2026-08-01T12:00:00Z"},
		"another audience":  {jwt(`{"aud":["vault"]}`), "is for the audience vault"},
		"one audience, no list": {
			jwt(`{"aud":"vault","iss":"https://hub2"}`),
			"is for the audience vault, comes from https://hub2",
		},
	} {
		t.Run(name, func(t *testing.T) {
			said := whyRejected(tc.token)
			require.Contains(t, said, tc.says)
			require.NotContains(t, said, tc.token)
		})
	}
}
