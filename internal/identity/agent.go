// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

// MaxRequest bounds the PEM certificate requests that are read, in bytes; that of an
// agent has about 600, one with an RSA 4096 key about 1,800.
const MaxRequest = 4 << 10

// maxAgentName bounds the name of an agent, in bytes; names are five letters or a UUID.
const maxAgentName = 253

// The bits of an RSA key that may be certified: a smaller key can be broken, a larger one
// is expensive to verify.
const minRSA, maxRSA = 2048, 4096

// Agent identifies one agent of one cluster.
type Agent struct {
	Cluster, Name string
}

// User returns the user name of the agent, which is also the common name of its
// certificate.
func (a Agent) User() string { return clusterv1.UserPrefix + a.Cluster + ":" + a.Name }

// ParseUser splits a user name; ok is false unless it has exactly the form of an agent:
// the prefix, a cluster name that can be a namespace, one colon, and an agent name of
// visible ASCII characters without a colon.
func ParseUser(user string) (a Agent, ok bool) {
	rest, prefixed := strings.CutPrefix(user, clusterv1.UserPrefix)
	cluster, name, ok := strings.Cut(rest, ":")
	if !prefixed || !ok || len(name) == 0 || len(name) > maxAgentName || strings.ContainsFunc(name, forbidden) ||
		len(validation.IsDNS1123Label(cluster)) > 0 {
		return Agent{}, false
	}
	return Agent{Cluster: cluster, Name: name}, true
}

// forbidden reports whether an agent name must not contain the character: names appear in
// messages and tables in terminals.
func forbidden(r rune) bool { return r <= ' ' || r > '~' || r == ':' }

// ClusterGroup returns the group of all agents of one cluster.
func ClusterGroup(cluster string) string { return clusterv1.UserPrefix + cluster }

// Clusters returns the clusters whose agent a requester is, by its groups, and whether it
// is an agent at all. An agent of more than one cluster, or of none that can be named,
// gets no cluster's rights.
func Clusters(groups []string) (clusters []string, agent bool) {
	for _, g := range groups {
		if g == clusterv1.GroupManagedClusters {
			agent = true
			continue
		}
		cluster, ok := strings.CutPrefix(g, clusterv1.UserPrefix)
		if !ok {
			cluster, ok = strings.CutPrefix(g, clusterv1.GroupPrefixEKS)
		}
		// Groups of add-ons continue after the cluster and are not agents.
		if !ok || cluster == "" || strings.Contains(cluster, ":") {
			continue
		}
		agent = true
		if !slices.Contains(clusters, cluster) {
			clusters = append(clusters, cluster)
		}
	}
	return clusters, agent
}

// ErrNoAgentRequest means that a certificate request does not have the form that the
// agent of the labelled cluster uses.
var ErrNoAgentRequest = errors.New("not the request of an agent of this cluster")

// ParseRequest reads the PEM certificate request of a CSR labelled with cluster and
// returns the agent that it is for. Every deviation from the form that agents use gives
// ErrNoAgentRequest with the reason.
func ParseRequest(raw []byte, cluster string) (Agent, error) {
	request, err := ReadRequest(raw)
	if err != nil {
		return Agent{}, err
	}
	return CheckRequest(request, cluster)
}

// ReadRequest reads a PEM certificate request of at most MaxRequest bytes, for callers
// that show what it asks for before they check it. The error is ErrNoAgentRequest with
// the reason, and the request is then nil.
func ReadRequest(raw []byte) (*x509.CertificateRequest, error) {
	if len(raw) > MaxRequest {
		return nil, refuse("it has %d bytes, more than %d", len(raw), MaxRequest)
	}
	if !bytes.HasPrefix(raw, []byte("-----BEGIN CERTIFICATE REQUEST-----")) {
		return nil, refuse("it does not begin with a PEM block of type CERTIFICATE REQUEST")
	}
	block, rest := pem.Decode(raw)
	if block == nil || block.Type != "CERTIFICATE REQUEST" || len(block.Headers) > 0 || len(bytes.TrimSpace(rest)) > 0 {
		return nil, refuse("it is not one plain PEM block of type CERTIFICATE REQUEST")
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, refuse("it cannot be parsed: %v", err)
	}
	return request, nil
}

// CheckRequest returns the agent of the cluster that a request is for, or
// ErrNoAgentRequest with the reason, also if no cluster may have that name. Cheap checks
// come first, and the signature, the most expensive one, last.
func CheckRequest(request *x509.CertificateRequest, cluster string) (Agent, error) {
	if err := CheckName(cluster); err != nil {
		return Agent{}, fmt.Errorf("%w: %w", ErrNoAgentRequest, err)
	}
	agent, err := subjectOf(request, cluster)
	if err != nil {
		return Agent{}, err
	}
	// Alternative names are extensions too.
	if len(request.Extensions) > 0 {
		return Agent{}, refuse("it asks for alternative names or other extensions")
	}
	if err := checkKey(request.PublicKey); err != nil {
		return Agent{}, err
	}
	if err := request.CheckSignature(); err != nil {
		return Agent{}, refuse("its signature is not that of its key")
	}
	return agent, nil
}

var (
	oidCommonName   = asn1.ObjectIdentifier{2, 5, 4, 3}
	oidOrganization = asn1.ObjectIdentifier{2, 5, 4, 10}
)

// subjectOf reads the agent from the subject, which must contain one common name and the
// groups, and nothing else that a signer could copy.
func subjectOf(request *x509.CertificateRequest, cluster string) (Agent, error) {
	names := 0
	for _, attribute := range request.Subject.Names {
		switch {
		case attribute.Type.Equal(oidCommonName):
			names++
		case !attribute.Type.Equal(oidOrganization):
			return Agent{}, refuse("its subject holds the attribute %s", attribute.Type)
		}
	}
	if names != 1 {
		return Agent{}, refuse("it has %d common names", names)
	}
	groups := slices.DeleteFunc(slices.Clone(request.Subject.Organization), func(o string) bool { return o == clusterv1.GroupManagedClusters })
	if len(groups) != 1 || groups[0] != ClusterGroup(cluster) {
		return Agent{}, refuse("its organizations are %q", request.Subject.Organization)
	}
	agent, ok := ParseUser(request.Subject.CommonName)
	if !ok || agent.Cluster != cluster {
		return Agent{}, refuse("its common name is %q", request.Subject.CommonName)
	}
	return agent, nil
}

// checkKey rejects keys that are too weak for an identity.
func checkKey(key any) error {
	switch k := key.(type) {
	case *ecdsa.PublicKey:
		if k.Curve == elliptic.P256() || k.Curve == elliptic.P384() || k.Curve == elliptic.P521() {
			return nil
		}
		return refuse("its key is on the curve %s", k.Curve.Params().Name)
	case *rsa.PublicKey:
		if bits := k.N.BitLen(); bits < minRSA || bits > maxRSA {
			return refuse("its RSA key has %d bits, not %d to %d", bits, minRSA, maxRSA)
		}
		return nil
	case ed25519.PublicKey:
		return nil
	}
	return refuse("its key is of an unknown kind")
}

func refuse(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrNoAgentRequest}, args...)...)
}
