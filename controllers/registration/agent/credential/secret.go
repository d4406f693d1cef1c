// SPDX-License-Identifier: Apache-2.0

package credential

import (
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/kubeconfig"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
)

var secretsResource = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}

// Keys of the pending secret, beside cluster-name, agent-name and tls.key. They
// are this agent's own; no other program reads them.
const (
	pendingRequest   = "csr-name"
	pendingHub       = "hub"
	pendingBootstrap = "bootstrap"
	pendingCreated   = "created"
	pendingAttempt   = "attempt"
	pendingRetry     = "retry-after"
	pendingReason    = "reason"
)

// Secret is what is remembered of one of the three secrets.
type Secret struct {
	// Name, UID and ResourceVersion identify what was seen.
	Name            string
	UID             types.UID
	ResourceVersion string
	// Data is the decoded content.
	Data map[string][]byte
}

// NewSecrets makes the collection of the three secrets in an agent's
// namespace. Its owner runs it; other secrets of the namespace are dropped.
func NewSecrets(client dynamic.Interface, namespace string, log logr.Logger) *watch.Collection[Secret] {
	wanted := []string{clusterv1.SecretBootstrapHubKubeconfig, clusterv1.SecretHubKubeconfig, clusterv1.SecretHubKubeconfigPending}
	return watch.New(watch.Options[Secret]{
		Client: client, Resource: secretsResource, Namespace: namespace, Log: log,
		Keep: func(u *unstructured.Unstructured) (Secret, bool) {
			if !slices.Contains(wanted, u.GetName()) {
				return Secret{}, false
			}
			return readSecret(u), true
		},
	})
}

func readSecret(u *unstructured.Unstructured) Secret {
	s := Secret{Name: u.GetName(), UID: u.GetUID(), ResourceVersion: u.GetResourceVersion(), Data: map[string][]byte{}}
	encoded, _, _ := unstructured.NestedStringMap(u.Object, "data")
	for key, value := range encoded {
		if raw, err := base64.StdEncoding.DecodeString(value); err == nil {
			s.Data[key] = raw
		}
	}
	return s
}

// Bootstrap is what the bootstrap secret says.
type Bootstrap struct {
	// Present tells whether there is a secret with a kubeconfig in it.
	Present bool
	// Config is the parsed kubeconfig, nil when there is none or it is refused.
	Config *kubeconfig.Config
	// Problem says why Config is nil, for people.
	Problem string
	// Digest changes when the content of the kubeconfig does.
	Digest string
}

// ReadBootstrap understands the bootstrap secret; ok false means there is none.
func ReadBootstrap(s Secret, ok bool) Bootstrap {
	raw := s.Data[clusterv1.SecretKeyKubeconfig]
	if !ok || len(raw) == 0 {
		return Bootstrap{Problem: "secret " + clusterv1.SecretBootstrapHubKubeconfig + " with key kubeconfig is missing"}
	}
	b := Bootstrap{Present: true, Digest: kubeconfig.HubHash(string(raw))}
	c, err := kubeconfig.Parse(raw)
	if err != nil {
		b.Problem = "secret " + clusterv1.SecretBootstrapHubKubeconfig + ": " + err.Error()
		return b
	}
	b.Config = c
	return b
}

// Kept is what hub-kubeconfig-secret says.
type Kept struct {
	// Secret is what was read; nil when there is none.
	Secret *Secret
	// Config is the parsed kubeconfig, nil when Problem tells why there is none.
	Config *kubeconfig.Config
	// Identity is the one that the secret names.
	Identity agent.Identity
	// Leaf is the client certificate.
	Leaf *x509.Certificate
	// Expires is the earliest end of a certificate in the chain.
	Expires time.Time
	// Problem says why the content cannot be used, empty when it can.
	Problem string
}

// ReadKept understands the hub secret; ok false means there is none.
func ReadKept(s Secret, ok bool) Kept {
	if !ok {
		return Kept{Problem: "there is no hub kubeconfig yet"}
	}
	k := Kept{Secret: &s, Identity: agent.Identity{
		Cluster: string(s.Data[clusterv1.SecretKeyClusterName]), Agent: string(s.Data[clusterv1.SecretKeyAgentName]),
	}}
	c, err := kubeconfig.ParseSecret(s.Data)
	if err != nil {
		k.Problem = err.Error()
		return k
	}
	chain, err := readChain(c.CertData)
	if err != nil {
		k.Problem = "the kept certificate: " + err.Error()
		return k
	}
	if _, err := tls.X509KeyPair(c.CertData, c.KeyData); err != nil {
		k.Problem = "the kept certificate and key do not belong together"
		return k
	}
	k.Config, k.Leaf, k.Expires = c, chain[0], chain[0].NotAfter
	for _, cert := range chain {
		if cert.NotAfter.Before(k.Expires) {
			k.Expires = cert.NotAfter
		}
	}
	return k
}

// Pending is a certificate request that is under way, or the time at which the
// next one may be made.
type Pending struct {
	// Secret is what was read; nil when nothing is pending.
	Secret *Secret
	// Request is the name of the request; empty while RetryAfter is waited for.
	Request string
	// Key is the private key as PEM.
	Key []byte
	// Identity and Hub are what the request is for (kubeconfig.Config.ID).
	Identity agent.Identity
	Hub      string
	// Bootstrap is the digest of the bootstrap kubeconfig at that time.
	Bootstrap string
	// Created is when the request was begun.
	Created time.Time
	// Attempt counts the requests that were denied in a row.
	Attempt int
	// RetryAfter is when a denied request may be repeated; else zero. Reason is
	// what the hub said.
	RetryAfter time.Time
	Reason     string
}

func readPending(s Secret, ok bool) Pending {
	if !ok {
		return Pending{}
	}
	p := Pending{
		Secret: &s, Request: string(s.Data[pendingRequest]), Key: s.Data[clusterv1.SecretKeyTLSKey],
		Identity: agent.Identity{Cluster: string(s.Data[clusterv1.SecretKeyClusterName]), Agent: string(s.Data[clusterv1.SecretKeyAgentName])},
		Hub:      string(s.Data[pendingHub]), Bootstrap: string(s.Data[pendingBootstrap]),
		Reason: string(s.Data[pendingReason]),
	}
	// Content that cannot be read counts as absent; the request is begun anew.
	p.Created, _ = time.Parse(time.RFC3339, string(s.Data[pendingCreated]))
	p.RetryAfter, _ = time.Parse(time.RFC3339, string(s.Data[pendingRetry]))
	p.Attempt, _ = strconv.Atoi(string(s.Data[pendingAttempt]))
	return p
}

// data is what the pending secret holds.
func (p Pending) data() map[string][]byte {
	d := map[string][]byte{
		clusterv1.SecretKeyClusterName: []byte(p.Identity.Cluster), clusterv1.SecretKeyAgentName: []byte(p.Identity.Agent),
		pendingHub: []byte(p.Hub), pendingBootstrap: []byte(p.Bootstrap), pendingAttempt: []byte(strconv.Itoa(p.Attempt)),
	}
	if p.Request != "" {
		d[pendingRequest], d[clusterv1.SecretKeyTLSKey] = []byte(p.Request), p.Key
		d[pendingCreated] = []byte(p.Created.UTC().Format(time.RFC3339))
	}
	if !p.RetryAfter.IsZero() {
		d[pendingRetry] = []byte(p.RetryAfter.UTC().Format(time.RFC3339))
		d[pendingReason] = []byte(p.Reason)
	}
	return d
}

// readChain parses PEM certificates, at least one, the leaf first.
func readChain(raw []byte) ([]*x509.Certificate, error) {
	var chain []*x509.Certificate
	for rest := raw; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
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

// fits tells why a certificate is not one for this identity; empty means it is.
func fits(leaf *x509.Certificate, id agent.Identity) string {
	want := id.Organizations()
	got := slices.Clone(leaf.Subject.Organization)
	slices.Sort(want)
	slices.Sort(got)
	switch {
	case leaf.Subject.CommonName != id.CommonName():
		return fmt.Sprintf("the certificate is for %q, not for %q", leaf.Subject.CommonName, id.CommonName())
	case !slices.Equal(got, want) || len(leaf.Subject.OrganizationalUnit) > 0:
		return "the certificate is for other groups"
	}
	return ""
}

// issued checks a certificate that the hub gave for the pending key.
func issued(certificate, key []byte, id agent.Identity) error {
	chain, err := readChain(certificate)
	if err != nil {
		return fmt.Errorf("the issued certificate: %w", err)
	}
	private, err := readKey(key)
	if err != nil {
		return err
	}
	if public, ok := chain[0].PublicKey.(*ecdsa.PublicKey); !ok || !public.Equal(private.Public()) {
		return errors.New("the issued certificate is for another key")
	}
	if problem := fits(chain[0], id); problem != "" {
		return errors.New(problem)
	}
	return nil
}

func readKey(raw []byte) (*ecdsa.PrivateKey, error) {
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
