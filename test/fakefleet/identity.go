// SPDX-License-Identifier: Apache-2.0

package fakefleet

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

// agentName is the second part of the common name of every simulated agent.
const agentName = "agent"

// Limits of a connection, as in ocm-agent.
const (
	handshakeTimeout = 10 * time.Second
	silenceTimeout   = 30 * time.Second
	answerTimeout    = 10 * time.Second
	// idleTimeout closes the connection of an agent that has left. That of a running one
	// always carries a watch.
	idleTimeout = 30 * time.Second
)

// request is the certificate request of a cluster's agent.
func request(cluster string, key *ecdsa.PrivateKey) ([]byte, error) {
	return signed(key, pkix.Name{
		CommonName:   clusterv1.UserPrefix + cluster + ":" + agentName,
		Organization: []string{clusterv1.UserPrefix + cluster, clusterv1.GroupManagedClusters},
	}, certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: cluster + "-", Labels: map[string]string{clusterv1.LabelClusterName: cluster},
		},
		Spec: certificatesv1.CertificateSigningRequestSpec{SignerName: clusterv1.SignerName},
	})
}

// signed returns a certificate request as JSON, completed with what the key signs.
func signed(key *ecdsa.PrivateKey, subject pkix.Name, csr certificatesv1.CertificateSigningRequest) ([]byte, error) {
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: subject}, key)
	if err != nil {
		return nil, fmt.Errorf("making the certificate request of %s: %w", subject.CommonName, err)
	}
	csr.TypeMeta = metav1.TypeMeta{APIVersion: certificatesv1.SchemeGroupVersion.String(), Kind: "CertificateSigningRequest"}
	csr.Spec.Request = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
	csr.Spec.Usages = []certificatesv1.KeyUsage{
		certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageClientAuth,
	}
	return json.Marshal(csr)
}

func newKey() (*ecdsa.PrivateKey, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }

// connect makes the connection of one agent; it sends nothing.
func (f *Fleet) connect(certificate []byte, key *ecdsa.PrivateKey) (*wire, error) {
	pair := tls.Certificate{PrivateKey: key}
	for block, rest := pem.Decode(certificate); block != nil; block, rest = pem.Decode(rest) {
		pair.Certificate = append(pair.Certificate, block.Bytes)
	}
	if len(pair.Certificate) == 0 {
		return nil, fmt.Errorf("connecting with an issued certificate: it holds no PEM block")
	}
	transport := &http.Transport{
		TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: f.roots, Certificates: []tls.Certificate{pair}},
		TLSHandshakeTimeout: handshakeTimeout, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 1, IdleConnTimeout: idleTimeout,
		HTTP2: &http.HTTP2Config{SendPingTimeout: silenceTimeout, PingTimeout: answerTimeout},
	}
	return &wire{http: &http.Client{Transport: transport}, host: f.host, name: UserAgent, counts: &f.counts}, nil
}
