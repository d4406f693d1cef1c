// SPDX-License-Identifier: Apache-2.0

package request

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// suffixLength is the number of random characters at the end of a request's name, the same as
// the API server's generateName adds.
const suffixLength = 5

// RandomName returns n characters, at most 26, from lower-case letters and digits.
func RandomName(n int) string { return strings.ToLower(rand.Text()[:n]) }

// NewKey returns a new ECDSA P-256 private key as PEM.
func NewKey() ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making a private key: %w", err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encoding a private key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

// ReadKey parses the result of NewKey. Its error never shows the key.
func ReadKey(raw []byte) (*ecdsa.PrivateKey, error) {
	block, _ := pem.Decode(raw)
	if block == nil {
		return nil, errors.New("the pending key is not readable")
	}
	key, err := x509.ParseECPrivateKey(block.Bytes)
	if err != nil {
		return nil, errors.New("the pending key is not readable")
	}
	return key, nil
}

// ReadChain parses one or more PEM certificates, the leaf first.
func ReadChain(raw []byte) ([]*x509.Certificate, error) {
	var chain []*x509.Certificate
	for block, rest := pem.Decode(raw); block != nil; block, rest = pem.Decode(rest) {
		cert, err := x509.ParseCertificate(block.Bytes)
		if block.Type != "CERTIFICATE" || err != nil {
			return nil, errors.New("is not readable")
		}
		chain = append(chain, cert)
	}
	if len(chain) == 0 {
		return nil, errors.New("is missing")
	}
	return chain, nil
}

// Expires returns the earliest expiry of the certificates in a chain.
func Expires(chain []*x509.Certificate) time.Time {
	return slices.MinFunc(chain, func(a, b *x509.Certificate) int { return a.NotAfter.Compare(b.NotAfter) }).NotAfter
}

// parseIssued parses a certificate issued by the hub and checks that it matches the request's key.
func parseIssued(certificate, key []byte) ([]*x509.Certificate, error) {
	chain, err := ReadChain(certificate)
	if err != nil {
		return nil, fmt.Errorf("the issued certificate: %w", err)
	}
	private, err := ReadKey(key)
	if err != nil {
		return nil, err
	}
	if public, ok := chain[0].PublicKey.(*ecdsa.PublicKey); !ok || !public.Equal(private.Public()) {
		return nil, errors.New("the issued certificate is for another key")
	}
	return chain, nil
}
