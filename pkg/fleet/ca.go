// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// hashPrefix begins a CA hash, as kubeadm writes it.
const hashPrefix = "sha256:"

// clusterInfoName is the ConfigMap in kube-public that tells everybody how the
// cluster is reached and which CA to trust.
const (
	clusterInfoName      = "cluster-info"
	clusterInfoNamespace = "kube-public"
)

// CAHash is the sha256 of the public key of a CA certificate, as kubeadm counts
// it: it stays the same when the certificate is renewed with its key.
func CAHash(cert *x509.Certificate) string {
	sum := sha256.Sum256(cert.RawSubjectPublicKeyInfo)
	return hashPrefix + hex.EncodeToString(sum[:])
}

// certificates reads the certificates of a PEM bundle.
func certificates(bundle []byte) ([]*x509.Certificate, error) {
	var out []*x509.Certificate
	for {
		var block *pem.Block
		block, bundle = pem.Decode(bundle)
		if block == nil {
			break
		}
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

// pin returns the part of the bundle whose hash is wanted.
func pin(bundle []byte, want string) ([]byte, error) {
	certs, err := certificates(bundle)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	var have []string
	for _, cert := range certs {
		if have = append(have, CAHash(cert)); CAHash(cert) == want {
			_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw})
		}
	}
	if out.Len() == 0 {
		return nil, fmt.Errorf("the hub has %s, wanted is %s", strings.Join(have, ", "), want)
	}
	return out.Bytes(), nil
}

// checkHash tells why text cannot be a CA hash.
func checkHash(text string) error {
	raw, err := hex.DecodeString(strings.TrimPrefix(text, hashPrefix))
	if !strings.HasPrefix(text, hashPrefix) || err != nil || len(raw) != sha256.Size || text != strings.ToLower(text) {
		return usage(fmt.Sprintf("%q cannot be a CA hash", text), "it is sha256: and 64 lower-case hex digits", "take it from: kubectl ocm hub token -o jsonpath={.ca-hash}")
	}
	return nil
}

// caOf returns the bundle by which a connection trusts its server, nil when it
// uses the system's roots, and an error when it trusts anything.
func caOf(config *rest.Config) ([]byte, error) {
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

// root verifies the server's certificate by the bundle (nil: the system's roots)
// and returns the CA certificate at the end of the chain. What is sent is one
// anonymous request for the version.
func root(ctx context.Context, server string, bundle []byte, proxyURL string) (*x509.Certificate, error) {
	return rootAs(ctx, server, "", bundle, proxyURL)
}

// rootAs is root for a server whose certificate is for another name than its
// address; empty is the address.
func rootAs(ctx context.Context, server, name string, bundle []byte, proxyURL string) (*x509.Certificate, error) {
	config := &rest.Config{Host: server, TLSClientConfig: rest.TLSClientConfig{CAData: bundle, ServerName: name}, Timeout: reachTimeout}
	if err := setProxy(config, proxyURL); err != nil {
		return nil, err
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(server, "/")+"/version", nil)
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

// publicInfo is what cluster-info tells.
type publicInfo struct {
	server string
	ca     []byte
	// signed tells that the CA was proven by the token.
	signed bool
}

// anonymousInfo reads cluster-info without any credential and without trust in
// the server, as kubeadm does. A bootstrap token proves what was read: nobody
// else can have signed it.
func anonymousInfo(ctx context.Context, server, proxyURL, token string) (*publicInfo, error) {
	config := &rest.Config{Host: server, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	if err := setProxy(config, proxyURL); err != nil {
		return nil, err
	}
	c, err := Connect(config, "")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	u, err := c.Client.Resource(configMaps).Namespace(clusterInfoNamespace).Get(ctx, clusterInfoName, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading %s/%s anonymously: %w", clusterInfoNamespace, clusterInfoName, err)
	}
	return parseInfo(u, token)
}

// parseInfo reads the ConfigMap cluster-info and, for a bootstrap token, checks
// its signature.
func parseInfo(u *unstructured.Unstructured, token string) (*publicInfo, error) {
	data, _, _ := unstructured.NestedStringMap(u.Object, "data")
	text := data["kubeconfig"]
	kc, err := clientcmd.Load([]byte(text))
	if err != nil || text == "" {
		return nil, errors.New("cluster-info holds no kubeconfig")
	}
	out := &publicInfo{}
	for _, cluster := range kc.Clusters {
		out.server, out.ca = cluster.Server, cluster.CertificateAuthorityData
	}
	if len(out.ca) == 0 {
		return nil, errors.New("cluster-info holds no CA")
	}
	id, secret, ok := bootstrapToken(token)
	if signature := data["jws-kubeconfig-"+id]; ok && signature != "" {
		if err := verifyJWS(signature, id, secret, text); err != nil {
			return nil, err
		}
		out.signed = true
	}
	return out, nil
}

// verifyJWS checks a detached HS256 signature over the kubeconfig, which
// kube-controller-manager made with the token.
func verifyJWS(signature, id, secret, content string) error {
	parts := strings.Split(signature, ".")
	if len(parts) != 3 || parts[1] != "" {
		return errors.New("the signature of cluster-info has the wrong form")
	}
	var header struct {
		Algorithm string `json:"alg"`
		KeyID     string `json:"kid"`
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[0])
	if err != nil || json.Unmarshal(raw, &header) != nil || header.Algorithm != "HS256" || header.KeyID != id {
		return errors.New("the signature of cluster-info is not of this token")
	}
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = mac.Write([]byte(parts[0] + "." + base64.RawURLEncoding.EncodeToString([]byte(content))))
	got, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil || !hmac.Equal(got, mac.Sum(nil)) {
		return errors.New("the signature of cluster-info is wrong: the server is not the hub that made this token")
	}
	return nil
}
