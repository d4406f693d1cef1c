// SPDX-License-Identifier: Apache-2.0

package token

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
)

// claims are the claims of a service account token.
type claims struct {
	ID        string    `json:"jti"`
	Issuer    string    `json:"iss"`
	Audiences audiences `json:"aud"`
	Expires   float64   `json:"exp"`
}

// audiences of a token: one, or a list.
type audiences []string

// UnmarshalJSON reads both forms.
func (a *audiences) UnmarshalJSON(raw []byte) error {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		*a = audiences{one}
		return nil
	}
	return json.Unmarshal(raw, (*[]string)(a))
}

// claimsOf decodes a token without verifying it.
func claimsOf(token string) (claims, error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return claims{}, errors.New("the API server's token is not a JWT")
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return claims{}, errors.New("the API server's token cannot be read")
	}
	var out claims
	if err := json.Unmarshal(raw, &out); err != nil {
		return claims{}, errors.New("the claims of the API server's token cannot be read")
	}
	return out, nil
}

// credentialID returns the credential id that the API server derives from a service account
// token. Servers before 1.30 have none; then it is empty.
func credentialID(token string) (string, error) {
	said, err := claimsOf(token)
	if err != nil || said.ID == "" {
		return "", err
	}
	return "JTI=" + said.ID, nil
}
