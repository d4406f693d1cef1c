// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/internal/identity"
)

func TestCheckName(t *testing.T) {
	for name, ok := range map[string]bool{
		"cluster1": true, "a": true, strings.Repeat("a", 63): true, "kubernetes": true, "openshift": true, "defaults": true,
		"work1":   true,
		"default": false, "kube-system": false, "kube-": false, "openshift-ingress": false,
		"open-cluster-management": false, "open-cluster-management-hub": false, "open-cluster-managements": false,
		"registration": false, "work": false, "managed-clusters": false,
		"": false, "a.b": false, "A": false, "-a": false, strings.Repeat("a", 64): false,
	} {
		t.Run(name, func(t *testing.T) {
			if err := identity.CheckName(name); ok {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, name)
			}
		})
	}
}

func TestParseUserIsExact(t *testing.T) {
	a, ok := identity.ParseUser("system:open-cluster-management:prod1:agent")
	require.True(t, ok)
	require.Equal(t, identity.Agent{Cluster: "prod1", Name: "agent"}, a)
	require.Equal(t, "system:open-cluster-management:prod1:agent", a.User())
	for _, user := range []string{
		"", "system:open-cluster-management:", "system:open-cluster-management:prod1", "system:open-cluster-management:prod1:",
		"system:open-cluster-management::agent", "system:open-cluster-management:prod1:a:b", "prod1:agent",
		"system:open-cluster-managementprod1:agent", "xsystem:open-cluster-management:prod1:agent",
		"system:open-cluster-management:prod.1:agent", "system:open-cluster-management:Prod1:agent", "system:open-cluster-management:prod1 :agent",
		"system:open-cluster-management:prod1:a\nb", "system:open-cluster-management:prod1:\x1b[2J", "system:open-cluster-management:prod1:a b",
		"system:open-cluster-management:prod1:\u0430gent", "system:open-cluster-management:prod1:" + strings.Repeat("a", 254),
	} {
		_, ok := identity.ParseUser(user)
		require.False(t, ok, user)
	}
}

func TestClustersOfGroups(t *testing.T) {
	for name, tc := range map[string]struct {
		groups []string
		want   []string
		agent  bool
	}{
		"a person": {[]string{"system:authenticated", "system:masters"}, nil, false},
		"an agent": {
			[]string{"system:open-cluster-management:c1", "system:open-cluster-management:managed-clusters"},
			[]string{"c1"},
			true,
		},
		"an agent of EKS":        {[]string{"open-cluster-management:c1"}, []string{"c1"}, true},
		"the common group alone": {[]string{"system:open-cluster-management:managed-clusters"}, nil, true},
		"an add-on of a cluster": {[]string{"system:open-cluster-management:cluster:c1:addon:a"}, nil, false},
		"two clusters at once": {
			[]string{"system:open-cluster-management:c1", "open-cluster-management:c2"},
			[]string{"c1", "c2"},
			true,
		},
		"the same cluster twice": {
			[]string{"system:open-cluster-management:c1", "open-cluster-management:c1"},
			[]string{"c1"},
			true,
		},
		"an empty cluster's name": {[]string{"open-cluster-management:"}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, agent := identity.Clusters(tc.groups)
			require.Equal(t, tc.want, got)
			require.Equal(t, tc.agent, agent)
		})
	}
}

func request(t testing.TB, template x509.CertificateRequest) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	return signed(t, template, key)
}

func signed(t testing.TB, template x509.CertificateRequest, key crypto.Signer) []byte {
	t.Helper()
	der, err := x509.CreateCertificateRequest(rand.Reader, &template, key)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

func subject(cn string, o ...string) x509.CertificateRequest {
	return x509.CertificateRequest{Subject: pkix.Name{CommonName: cn, Organization: o}}
}

func TestParseRequest(t *testing.T) {
	const p = "system:open-cluster-management:"
	good := request(t, subject(p+"prod1:a", p+"prod1", p+"managed-clusters"))
	agent, err := identity.ParseRequest(good, "prod1")
	require.NoError(t, err)
	require.Equal(t, identity.Agent{Cluster: "prod1", Name: "a"}, agent)
	_, err = identity.ParseRequest(request(t, subject(p+"prod1:a", p+"prod1")), "prod1")
	require.NoError(t, err, "without the common group it is still one of ours")

	broken := []byte(strings.Replace(string(good), "MI", "MM", 1))
	named := subject(p+"prod1:a", p+"prod1")
	named.DNSNames = []string{"kubernetes.default"}
	authority := subject(p+"prod1:a", p+"prod1")
	authority.ExtraExtensions = []pkix.Extension{{
		Id:       asn1.ObjectIdentifier{2, 5, 29, 19},
		Critical: true,
		Value:    []byte{0x30, 3, 1, 1, 0xff},
	}}
	unit := subject(p+"prod1:a", p+"prod1")
	unit.Subject.OrganizationalUnit = []string{"u"}
	uid := subject(p+"prod1:a", p+"prod1")
	uid.Subject.ExtraNames = []pkix.AttributeTypeAndValue{{
		Type:  asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57683, 2},
		Value: "uid",
	}}
	twoNames := subject("", p+"prod1")
	for _, cn := range []string{p + "prod10:a", p + "prod1:a"} {
		twoNames.Subject.ExtraNames = append(twoNames.Subject.ExtraNames, pkix.AttributeTypeAndValue{Type: asn1.ObjectIdentifier{
			2,
			5,
			4,
			3,
		}, Value: cn})
	}
	forged := block(t, good)
	forged.Bytes[len(forged.Bytes)-1] ^= 1
	for name, raw := range map[string][]byte{
		"nothing":            nil,
		"garbage":            bytes.Repeat([]byte("garbage\n"), 100),
		"another PEM type":   []byte(strings.ReplaceAll(string(good), "CERTIFICATE REQUEST", "CERTIFICATE")),
		"broken content":     broken,
		"a forged signature": pem.EncodeToMemory(forged),
		"two blocks":         append(append([]byte{}, good...), good...),
		"text after it":      append(append([]byte{}, good...), "more"...),
		"text before it":     append([]byte("text\n"), good...),
		"headers in the block": pem.EncodeToMemory(&pem.Block{
			Type:    "CERTIFICATE REQUEST",
			Headers: map[string]string{"a": "b"},
			Bytes:   block(t, good).Bytes,
		}),
		"bytes after the request in it":                 pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: append(block(t, good).Bytes, 0)}),
		"too large":                                     append(append([]byte{}, good...), bytes.Repeat([]byte("\n"), identity.MaxRequest)...),
		"megabytes":                                     append(append([]byte{}, good...), bytes.Repeat(good, 4<<10)...),
		"no organization":                               request(t, subject(p+"prod1:a")),
		"the common group only":                         request(t, subject(p+"prod1:a", p+"managed-clusters")),
		"a foreign organization":                        request(t, subject(p+"prod1:a", "system:masters")),
		"one organization more":                         request(t, subject(p+"prod1:a", p+"prod1", "system:masters")),
		"the groups of two clusters":                    request(t, subject(p+"prod1:a", p+"prod1", p+"prod2")),
		"the group of prod10 (CVE-2026-4740)":           request(t, subject(p+"prod1:a", p+"prod10")),
		"name and group of prod10 under label prod1":    request(t, subject(p+"prod10:a", p+"prod10", p+"managed-clusters")),
		"the name of prod10 with the group of prod1":    request(t, subject(p+"prod10:a", p+"prod1")),
		"a common name without agent":                   request(t, subject(p+"prod1", p+"prod1")),
		"a common name with one colon more":             request(t, subject(p+"prod1:a:b", p+"prod1")),
		"a common name of somebody else":                request(t, subject("admin", p+"prod1")),
		"a common name with a control character":        request(t, subject(p+"prod1:a\x1b[2J", p+"prod1")),
		"two common names":                              request(t, twoNames),
		"another attribute in the subject":              request(t, unit),
		"a user's UID in the subject":                   request(t, uid),
		"alternative names":                             request(t, named),
		"an authority":                                  request(t, authority),
		"the organization of a cluster, with a newline": request(t, subject(p+"prod1:a", p+"prod1\n")),
		"a key on P-224":                                signed(t, subject(p+"prod1:a", p+"prod1"), weakCurve(t)),
		"a key of RSA 1024":                             signed(t, subject(p+"prod1:a", p+"prod1"), weakRSA(t)),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := identity.ParseRequest(raw, "prod1")
			require.ErrorIs(t, err, identity.ErrNoAgentRequest)
		})
	}
}

func block(t *testing.T, raw []byte) *pem.Block {
	t.Helper()
	b, _ := pem.Decode(raw)
	require.NotNil(t, b)
	return b
}

func weakCurve(t *testing.T) crypto.Signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	require.NoError(t, err)
	return key
}

func weakRSA(t *testing.T) crypto.Signer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 1024)
	require.NoError(t, err)
	return key
}

func TestParseRequestTakesEveryStrongKey(t *testing.T) {
	const p = "system:open-cluster-management:"
	strong, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	curve, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	require.NoError(t, err)
	for name, key := range map[string]crypto.Signer{"RSA": strong, "Ed25519": edwards, "P-384": curve} {
		t.Run(name, func(t *testing.T) {
			agent, err := identity.ParseRequest(signed(t, subject(p+"c1:a", p+"c1"), key), "c1")
			require.NoError(t, err)
			require.Equal(t, identity.Agent{Cluster: "c1", Name: "a"}, agent)
		})
	}
}

// BenchmarkParseRequest measures what one certificate request costs the hub: one that is
// rejected early must cost less than a valid one.
func BenchmarkParseRequest(b *testing.B) {
	const p = "system:open-cluster-management:"
	good := request(b, subject(p+"prod1:a", p+"prod1", p+"managed-clusters"))
	for name, raw := range map[string][]byte{
		"good":      good,
		"foreign":   request(b, subject(p+"prod10:a", p+"prod10")),
		"garbage":   bytes.Repeat([]byte("garbage\n"), 500),
		"megabytes": bytes.Repeat(good, 2<<10),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = identity.ParseRequest(raw, "prod1")
			}
		})
	}
}

func TestWhoAnAddOnIs(t *testing.T) {
	a := identity.AddOn{Cluster: "prod1", Name: "web"}
	require.Equal(t, "system:open-cluster-management:cluster:prod1:addon:web:agent:web", a.User("web"))
	require.Equal(t, []string{"system:open-cluster-management:cluster:prod1:addon:web", "system:open-cluster-management:addon:web"}, a.Groups())
	require.Equal(t, "system:serviceaccount:prod1:web-agent", a.TokenUser())
	_, isAgent := identity.ParseUser(a.User("web"))
	require.False(t, isAgent, "an add-on is nobody's registration agent")
	clusters, isAgent := identity.Clusters(a.Groups())
	require.Empty(t, clusters)
	require.False(t, isAgent)
}
