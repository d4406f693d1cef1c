// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/kubectl-ocm/kubectl-ocm/internal/identity"
)

// backdate is how much earlier than now a certificate begins, for clocks that are behind;
// serialBits is the size of its serial number.
const (
	backdate   = 5 * time.Minute
	serialBits = 128
)

// Authority signs the certificates of an add-on's own signer.
type Authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

// ReadAuthority reads a PEM authority as a Secret of type kubernetes.io/tls holds it. The
// key may be RSA, elliptic curve or Ed25519, in PKCS#8, PKCS#1 or SEC 1 form. The error
// never contains the key.
func ReadAuthority(certificate, key []byte) (Authority, error) {
	block, _ := pem.Decode(certificate)
	if block == nil || block.Type != "CERTIFICATE" {
		return Authority{}, errors.New("tls.crt: must be a certificate in PEM")
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return Authority{}, fmt.Errorf("tls.crt: %w", err)
	}
	if !c.IsCA {
		return Authority{}, errors.New("tls.crt: must be the certificate of an authority (CA:TRUE)")
	}
	k := readKey(key)
	if k == nil {
		return Authority{}, errors.New("tls.key: must be a private key in PEM, as PKCS#8, PKCS#1 or SEC 1")
	}
	if public, ok := k.Public().(interface{ Equal(crypto.PublicKey) bool }); !ok || !public.Equal(c.PublicKey) {
		return Authority{}, errors.New("tls.key: is not the key of tls.crt")
	}
	return Authority{c, k}, nil
}

// readKey decodes a private key; it returns nil if there is none.
func readKey(raw []byte) crypto.Signer {
	block, _ := pem.Decode(raw)
	if block == nil {
		return nil
	}
	if k, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
		signer, _ := k.(crypto.Signer)
		return signer
	}
	if k, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return k
	}
	if k, err := x509.ParseECPrivateKey(block.Bytes); err == nil {
		return k
	}
	return nil
}

// Sign returns the PEM certificate for a request. It is valid for life, for the duration
// the request asks for if that is shorter, and never longer than the authority. Approving
// the request decides whether it may be signed; Sign does not check that.
func (a Authority) Sign(csr *certificatesv1.CertificateSigningRequest, life time.Duration, now time.Time) ([]byte, error) {
	request, err := identity.ReadRequest(csr.Spec.Request)
	if err != nil {
		return nil, fmt.Errorf("reading it: %w", err)
	}
	if err := request.CheckSignature(); err != nil {
		return nil, errors.New("its signature does not match its key")
	}
	if s := csr.Spec.ExpirationSeconds; s != nil {
		life = min(life, time.Duration(*s)*time.Second)
	}
	end := now.Add(life)
	if end.After(a.certificate.NotAfter) {
		end = a.certificate.NotAfter
	}
	if !end.After(now) {
		return nil, fmt.Errorf("the authority expired at %s; give the add-on a new one", a.certificate.NotAfter.UTC().Format(time.RFC3339))
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), serialBits))
	if err != nil {
		return nil, fmt.Errorf("making a serial number: %w", err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: serial, Subject: request.Subject, DNSNames: request.DNSNames,
		NotBefore: now.Add(-backdate), NotAfter: end, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}, a.certificate, request.PublicKey, a.key)
	if err != nil {
		return nil, fmt.Errorf("signing: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}
