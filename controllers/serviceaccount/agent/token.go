// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// maxToken bounds the tokens that are read, in bytes; those of Kubernetes have about 1,000.
const maxToken = 64 << 10

// maxTime bounds the times that are read, in seconds since 1970: the last that JSON can hold,
// at the end of the year 9999.
const maxTime = 253402300799

// The share of its life after which a token is renewed, and the shortest time for which one is
// kept, so that a cluster that grants very short lives is not flooded with requests.
const (
	renewNumerator, renewDenominator = 4, 5
	shortest                         = 10 * time.Second
)

// Token is what a token says of itself. Its signature is not verified: only the cluster can
// say whether it is valid.
type Token struct {
	// Subject is the user name of its bearer, and Account the UID of the ServiceAccount, empty
	// if the token does not say.
	Subject string
	Account types.UID
	// Issued and Expires are by the clock of the cluster.
	Issued, Expires time.Time
}

// parse reads a JSON Web Token; ok is false if it is none, or has no life.
func parse(text string) (t Token, ok bool) {
	parts := strings.Split(text, ".")
	if len(text) > maxToken || len(parts) != 3 {
		return t, false
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return t, false
	}
	var payload struct {
		Subject string  `json:"sub"`
		Issued  float64 `json:"iat"`
		Expires float64 `json:"exp"`
		Bound   struct {
			Account struct {
				UID types.UID `json:"uid"`
			} `json:"serviceaccount"`
		} `json:"kubernetes.io"`
	}
	if json.Unmarshal(raw, &payload) != nil || payload.Issued <= 0 || payload.Expires <= payload.Issued || payload.Expires > maxTime {
		return t, false
	}
	return Token{
		Subject: payload.Subject, Account: payload.Bound.Account.UID,
		Issued: time.Unix(int64(payload.Issued), 0), Expires: time.Unix(int64(payload.Expires), 0),
	}, true
}

// RenewAt returns when the token is to be renewed: after four fifths of the life that the
// cluster granted, which may be shorter or longer than what was asked for.
func (t Token) RenewAt() time.Time {
	life := t.Expires.Sub(t.Issued)
	return t.Issued.Add(max(life/renewDenominator*renewNumerator, min(shortest, life)))
}
