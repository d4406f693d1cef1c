// SPDX-License-Identifier: Apache-2.0

package trust

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/kubectl-ocm/kubectl-ocm/internal/kubeconfig"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
)

// HashPrefix is the prefix of a CA hash, as in kubeadm.
const HashPrefix = "sha256:"

// Hash returns the SHA-256 of the public key of a CA certificate, as kubeadm computes it: it
// stays the same when the certificate is renewed with its key.
func Hash(cert *x509.Certificate) string {
	sum := sha256.Sum256(cert.RawSubjectPublicKeyInfo)
	return HashPrefix + hex.EncodeToString(sum[:])
}

// Certificates parses the certificates of a PEM bundle.
func Certificates(bundle []byte) ([]*x509.Certificate, error) {
	var out []*x509.Certificate
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("reading a CA certificate: %w", err)
		}
		out = append(out, cert)
	}
	if len(out) == 0 {
		return nil, errors.New("there is no certificate in it")
	}
	return out, nil
}

// selectByHash returns the part of the bundle with the wanted hash.
func selectByHash(bundle []byte, want string) ([]byte, error) {
	certs, err := Certificates(bundle)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	var have []string
	for _, cert := range certs {
		if have = append(have, Hash(cert)); Hash(cert) == want {
			_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw})
		}
	}
	if out.Len() == 0 {
		return nil, fmt.Errorf("the hub has %s, expected %s", strings.Join(have, ", "), want)
	}
	return out.Bytes(), nil
}

// CheckHash returns why text cannot be a CA hash.
func CheckHash(text string) error {
	raw, err := hex.DecodeString(strings.TrimPrefix(text, HashPrefix))
	if !strings.HasPrefix(text, HashPrefix) || err != nil || len(raw) != sha256.Size || text != strings.ToLower(text) {
		return fleet.Misuse(fmt.Sprintf("%q cannot be a CA hash", text), "it is sha256: and 64 lower-case hex digits", TakeHash.With())
	}
	return nil
}

// CAOf returns the bundle with which a connection verifies its server: nil for the system's
// roots, and an error when it verifies nothing.
func CAOf(config *rest.Config) ([]byte, error) {
	if config.Insecure {
		return nil, errInsecure
	}
	c := rest.CopyConfig(config)
	if err := rest.LoadTLSFiles(c); err != nil {
		return nil, fmt.Errorf("reading the CA of %s: %w", c.Host, err)
	}
	return c.CAData, nil
}

var errInsecure = errors.New("the kubeconfig skips the verification of the server's certificate")

// Root verifies the server's certificate and returns the CA certificate at the end of the
// chain. The certificate may have another name than the server's address; an empty name means
// the address. It sends one anonymous request for the version.
func Root(ctx context.Context, e Endpoint, name string) (*x509.Certificate, error) {
	config := &rest.Config{Host: e.Server, TLSClientConfig: rest.TLSClientConfig{CAData: e.CA, ServerName: name}, Timeout: fleet.ReachTimeout}
	config.Wrap(kubeconfig.Direct) // the chain of another server says nothing of this one
	if err := setProxy(config, e.ProxyURL); err != nil {
		return nil, err
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(e.Server, "/")+"/version", nil)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.TLS == nil || len(response.TLS.VerifiedChains) == 0 {
		return nil, errors.New("the server's certificate was not verified")
	}
	chain := response.TLS.VerifiedChains[0]
	return chain[len(chain)-1], nil
}

// ShortHash returns the beginning of a CA hash, for display.
func ShortHash(hash string) string {
	if hash == "" {
		return "public"
	}
	return hash[:min(len(hash), 19)]
}
