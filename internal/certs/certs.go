// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"net"
	"slices"
	"time"
)

// Policy sets how long certificates live.
type Policy struct {
	// SignerLife is the lifetime of the authority.
	SignerLife time.Duration
	// LeafLife is the lifetime of a serving certificate, which never outlives the
	// authority.
	LeafLife time.Duration
	// RotateAt is the fraction of its lifetime after which a certificate is replaced,
	// between 0 and 1. A lower value is safer against outages, a higher one causes fewer
	// rotations.
	RotateAt float64
	// Aliases are the additional DNS names and IP addresses of a serving certificate, by its name.
	Aliases map[string][]string
}

// names returns all DNS names and IP addresses of a serving certificate.
func (p Policy) names(name string) (dns []string, ips []net.IP) {
	for _, each := range append([]string{name}, p.Aliases[name]...) {
		if ip := net.ParseIP(each); ip != nil {
			ips = append(ips, ip)
		} else {
			dns = append(dns, each)
		}
	}
	return dns, ips
}

// isFor reports whether a serving certificate has exactly the names that it should have.
func (p Policy) isFor(c *x509.Certificate, name string) bool {
	dns, ips := p.names(name)
	return slices.Equal(c.DNSNames, dns) && slices.EqualFunc(c.IPAddresses, ips, net.IP.Equal)
}

// DefaultPolicy returns the policy of the contract.
func DefaultPolicy() Policy {
	return Policy{SignerLife: 365 * 24 * time.Hour, LeafLife: 30 * 24 * time.Hour, RotateAt: 0.8}
}

// backdate allows for clocks that are slightly behind.
const backdate = time.Minute

// Pair is a certificate and its private key, both in PEM. The key is secret.
type Pair struct {
	Cert, Key []byte
}

// Set is everything that the hub serves with.
type Set struct {
	// Signer is the authority.
	Signer Pair
	// Bundle holds the PEM certificates of all valid authorities, newest first.
	Bundle []byte
	// Leaves are the serving certificates by DNS name.
	Leaves map[string]Pair
}

// Names lists what Ensure created.
type Names []string

// Ensure returns a Set that is good at now for the DNS names, and what in it is new:
// "signer", "bundle", or DNS names. Parts of have that are still good are kept byte for
// byte; leaves of other names are dropped. A leaf of an earlier authority of the bundle is
// good: by the time it is replaced, clients have the new authority.
func (p Policy) Ensure(have Set, names []string, now time.Time) (Set, Names, error) {
	out := Set{Signer: have.Signer, Leaves: map[string]Pair{}}
	var changed Names
	signer, err := parse(have.Signer)
	if err != nil || !signer.Leaf.IsCA || p.worn(signer.Leaf, now) {
		if out.Signer, err = p.newSigner(now); err != nil {
			return Set{}, nil, err
		}
		if signer, err = parse(out.Signer); err != nil {
			return Set{}, nil, err
		}
		changed = append(changed, "signer")
	}
	out.Bundle = bundle(signer.Leaf, have.Bundle, now)
	if !bytes.Equal(out.Bundle, have.Bundle) {
		changed = append(changed, "bundle")
	}
	for _, name := range names {
		leaf, good := have.Leaves[name], false
		if parsed, err := parse(leaf); err == nil {
			good = !p.worn(parsed.Leaf, now) && p.isFor(parsed.Leaf, name) && trusted(out.Bundle, parsed.Leaf)
		}
		if !good {
			if leaf, err = p.issue(signer, name, now); err != nil {
				return Set{}, nil, err
			}
			changed = append(changed, name)
		}
		out.Leaves[name] = leaf
	}
	return out, changed, nil
}

// trusted reports whether an authority of the bundle has signed the leaf.
func trusted(bundle []byte, leaf *x509.Certificate) bool {
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		if c, err := x509.ParseCertificate(block.Bytes); err == nil && leaf.CheckSignatureFrom(c) == nil {
			return true
		}
	}
	return false
}

// Next returns when Ensure will next have something to do for the set.
func (p Policy) Next(s Set) time.Time {
	var next time.Time
	for _, pair := range append(slices.Collect(maps.Values(s.Leaves)), s.Signer) {
		if parsed, err := parse(pair); err == nil {
			if t := p.rotation(parsed.Leaf); next.IsZero() || t.Before(next) {
				next = t
			}
		}
	}
	return next
}

func (p Policy) rotation(c *x509.Certificate) time.Time {
	life := c.NotAfter.Sub(c.NotBefore)
	return c.NotBefore.Add(time.Duration(float64(life) * p.RotateAt))
}

func (p Policy) worn(c *x509.Certificate, now time.Time) bool {
	return now.Before(c.NotBefore) || !now.Before(p.rotation(c))
}

var errNoPair = errors.New("certificate or key cannot be read")

func parse(p Pair) (*tls.Certificate, error) {
	pair, err := tls.X509KeyPair(p.Cert, p.Key)
	if err != nil {
		// The cause may quote the key's bytes.
		return nil, errNoPair
	}
	return &pair, nil
}

func (p Policy) newSigner(now time.Time) (Pair, error) {
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: fmt.Sprintf("cluster-manager-webhook@%d", now.Unix())},
		NotBefore:             now.Add(-backdate),
		NotAfter:              now.Add(p.SignerLife),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	pair, err := sign(template, nil)
	if err != nil {
		return Pair{}, fmt.Errorf("making the authority of the webhooks: %w", err)
	}
	return pair, nil
}

func (p Policy) issue(signer *tls.Certificate, name string, now time.Time) (Pair, error) {
	end := now.Add(p.LeafLife)
	if end.After(signer.Leaf.NotAfter) {
		end = signer.Leaf.NotAfter
	}
	dns, ips := p.names(name)
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: name},
		DNSNames:    dns,
		IPAddresses: ips,
		NotBefore:   now.Add(-backdate),
		NotAfter:    end,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	pair, err := sign(template, signer)
	if err != nil {
		return Pair{}, fmt.Errorf("making the certificate of %s: %w", name, err)
	}
	return pair, nil
}

// sign creates a key and signs template with the signer, or with itself.
func sign(template *x509.Certificate, signer *tls.Certificate) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return Pair{}, err
	}
	template.SerialNumber = serial.Add(serial, big.NewInt(1))
	if signer == nil {
		signer = &tls.Certificate{Leaf: template, PrivateKey: key}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, signer.Leaf, key.Public(), signer.PrivateKey)
	if err != nil {
		return Pair{}, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Pair{}, err
	}
	return Pair{
		Cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		Key:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}),
	}, nil
}

// maxBundle bounds how many authorities are kept beside the newest.
const maxBundle = 8

// bundle returns the authority and its still valid predecessors, newest first, each once.
// Anything that is not a certificate is dropped.
func bundle(signer *x509.Certificate, before []byte, now time.Time) []byte {
	certs := []*x509.Certificate{signer}
	for block, rest := pem.Decode(before); block != nil; block, rest = pem.Decode(rest) {
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil || now.After(c.NotAfter) || slices.ContainsFunc(certs, c.Equal) {
			continue
		}
		certs = append(certs, c)
	}
	slices.SortStableFunc(certs[1:], func(a, b *x509.Certificate) int { return b.NotBefore.Compare(a.NotBefore) })
	var out []byte
	for _, c := range certs[:min(len(certs), maxBundle+1)] {
		out = append(out, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})...)
	}
	return out
}
