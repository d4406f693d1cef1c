// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math/big"
	"net"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// Tests start thousands of servers, most of them with the same documents. What all servers of a
// process can share is made once.

var parsed = struct {
	sync.Mutex
	of map[string][]*unstructured.Unstructured
}{of: map[string][]*unstructured.Unstructured{}}

// objectsIn returns the objects in YAML documents. Callers copy what they change.
func objectsIn(text string) ([]*unstructured.Unstructured, error) {
	parsed.Lock()
	defer parsed.Unlock()
	if objects, ok := parsed.of[text]; ok {
		return objects, nil
	}
	var objects []*unstructured.Unstructured
	for _, document := range strings.Split(text, "\n---\n") {
		if strings.TrimSpace(document) == "" {
			continue
		}
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), u); err != nil {
			return nil, fmt.Errorf("reading %s: %w", document, err)
		}
		objects = append(objects, u)
	}
	parsed.of[text] = objects
	return objects, nil
}

// certificate returns the certificate of all servers. That of httptest has an RSA key, with which a
// handshake takes ten times as long.
var certificate = sync.OnceValues(func() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}, DNSNames: []string{"example.com"},
		NotBefore: time.Unix(0, 0), NotAfter: time.Date(2084, 1, 1, 0, 0, 0, 0, time.UTC),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IsCA: true, BasicConstraintsValid: true,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}, err
})
