// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// lifetime of every certificate; backdate allows for small clock differences.
const (
	lifetime = 10 * 365 * 24 * time.Hour
	backdate = 5 * time.Minute
)

// Authority is a certificate authority whose files live in Dir.
type Authority struct {
	// Dir holds ca.crt, ca.key and every pair from Serving and Client.
	Dir string

	now  time.Time
	cert *x509.Certificate
	key  crypto.Signer
}

// Pair names the PEM files of a certificate and its private key.
type Pair struct {
	// CertFile is the absolute path of the certificate.
	CertFile string
	// KeyFile is the absolute path of the private key, mode 0600.
	KeyFile string
}

// Open reads the authority in dir, or creates a new one called name there. Certificates
// are valid from five minutes before now.
func Open(dir, name string, now time.Time) (*Authority, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making certificate folder: %w", err)
	}
	a := &Authority{Dir: dir, now: now}
	key, err := a.signingKey("ca")
	if err != nil {
		return nil, err
	}
	a.key = key
	template := a.template(pkix.Name{CommonName: name})
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature
	a.cert, err = a.certificate("ca", template, template, key.Public())
	return a, err
}

// CertFile returns the path of the authority's own certificate.
func (a *Authority) CertFile() string { return filepath.Join(a.Dir, "ca.crt") }

// KeyFile returns the path of the authority's private key; kube-controller-manager signs
// certificate requests with it.
func (a *Authority) KeyFile() string { return filepath.Join(a.Dir, "ca.key") }

// Certificate returns the authority's certificate in PEM.
func (a *Authority) Certificate() []byte { return encode("CERTIFICATE", a.cert.Raw) }

// Serving creates (or reads) the serving certificate called file for the given DNS names
// and addresses.
func (a *Authority) Serving(file string, names []string, addresses []net.IP) (Pair, error) {
	template := a.template(pkix.Name{CommonName: file})
	template.DNSNames, template.IPAddresses = names, addresses
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	return a.pair(file, template)
}

// Client creates (or reads) the client certificate called file for a Kubernetes user and
// its groups.
func (a *Authority) Client(file, user string, groups ...string) (Pair, error) {
	template := a.template(pkix.Name{CommonName: user, Organization: groups})
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return a.pair(file, template)
}

// SigningKey creates (or reads) a bare private key called file and returns its path;
// kube-apiserver signs and verifies ServiceAccount tokens with it.
func (a *Authority) SigningKey(file string) (string, error) {
	_, err := a.signingKey(file)
	return filepath.Join(a.Dir, file+".key"), err
}

func (a *Authority) template(subject pkix.Name) *x509.Certificate {
	return &x509.Certificate{
		Subject:   subject,
		NotBefore: a.now.Add(-backdate),
		NotAfter:  a.now.Add(lifetime),
		KeyUsage:  x509.KeyUsageDigitalSignature,
	}
}

func (a *Authority) pair(file string, template *x509.Certificate) (Pair, error) {
	key, err := a.signingKey(file)
	if err != nil {
		return Pair{}, err
	}
	if _, err := a.certificate(file, template, a.cert, key.Public()); err != nil {
		return Pair{}, err
	}
	path := filepath.Join(a.Dir, file)
	return Pair{CertFile: path + ".crt", KeyFile: path + ".key"}, nil
}

// certificate reads file.crt, or signs template with the authority's key.
func (a *Authority) certificate(file string, template, parent *x509.Certificate, public any) (*x509.Certificate, error) {
	path := filepath.Join(a.Dir, file+".crt")
	der, err := readPEM(path)
	if errors.Is(err, fs.ErrNotExist) {
		if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)); err != nil {
			return nil, fmt.Errorf("choosing serial number of %s: %w", path, err)
		}
		if der, err = x509.CreateCertificate(rand.Reader, template, parent, public, a.key); err != nil {
			return nil, fmt.Errorf("signing certificate %s: %w", path, err)
		}
		err = os.WriteFile(path, encode("CERTIFICATE", der), 0o600)
	}
	if err != nil {
		return nil, fmt.Errorf("keeping certificate %s: %w", path, err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("parsing certificate %s: %w", path, err)
	}
	return cert, nil
}

// signingKey reads file.key, or creates a new P-256 key.
func (a *Authority) signingKey(file string) (*ecdsa.PrivateKey, error) {
	path := filepath.Join(a.Dir, file+".key")
	der, err := readPEM(path)
	if errors.Is(err, fs.ErrNotExist) {
		return newKey(path)
	}
	if err != nil {
		return nil, fmt.Errorf("reading key %s: %w", path, err)
	}
	key, err := x509.ParseECPrivateKey(der)
	if err != nil {
		return nil, fmt.Errorf("parsing key %s: %w", path, err)
	}
	return key, nil
}

func newKey(path string) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making key %s: %w", path, err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encoding key %s: %w", path, err)
	}
	if err := os.WriteFile(path, encode("EC PRIVATE KEY", der), 0o600); err != nil {
		return nil, fmt.Errorf("writing key %s: %w", path, err)
	}
	return key, nil
}

func readPEM(path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, errors.New("no PEM block")
	}
	return block.Bytes, nil
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
