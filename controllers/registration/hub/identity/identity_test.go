// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/hub/identity"
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
		"a person":                {[]string{"system:authenticated", "system:masters"}, nil, false},
		"an agent":                {[]string{"system:open-cluster-management:c1", "system:open-cluster-management:managed-clusters"}, []string{"c1"}, true},
		"an agent of EKS":         {[]string{"open-cluster-management:c1"}, []string{"c1"}, true},
		"the common group alone":  {[]string{"system:open-cluster-management:managed-clusters"}, nil, true},
		"an add-on of a cluster":  {[]string{"system:open-cluster-management:cluster:c1:addon:a"}, nil, false},
		"two clusters at once":    {[]string{"system:open-cluster-management:c1", "open-cluster-management:c2"}, []string{"c1", "c2"}, true},
		"the same cluster twice":  {[]string{"system:open-cluster-management:c1", "open-cluster-management:c1"}, []string{"c1"}, true},
		"an empty cluster's name": {[]string{"open-cluster-management:"}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, agent := identity.Clusters(tc.groups)
			require.Equal(t, tc.want, got)
			require.Equal(t, tc.agent, agent)
		})
	}
}

func request(t *testing.T, template x509.CertificateRequest) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
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
	for name, raw := range map[string][]byte{
		"nothing":                             nil,
		"another PEM type":                    []byte(strings.ReplaceAll(string(good), "CERTIFICATE REQUEST", "CERTIFICATE")),
		"broken content":                      broken,
		"two blocks":                          append(append([]byte{}, good...), good...),
		"too large":                           append(append([]byte{}, good...), make([]byte, 1<<15)...),
		"no organization":                     request(t, subject(p+"prod1:a")),
		"the common group only":               request(t, subject(p+"prod1:a", p+"managed-clusters")),
		"a foreign organization":              request(t, subject(p+"prod1:a", "system:masters")),
		"one organization more":               request(t, subject(p+"prod1:a", p+"prod1", "system:masters")),
		"the group of prod10 (CVE-2026-4740)": request(t, subject(p+"prod1:a", p+"prod10")),
		"name and group of prod10 under label prod1":    request(t, subject(p+"prod10:a", p+"prod10", p+"managed-clusters")),
		"the name of prod10 with the group of prod1":    request(t, subject(p+"prod10:a", p+"prod1")),
		"a common name without agent":                   request(t, subject(p+"prod1", p+"prod1")),
		"a common name with one colon more":             request(t, subject(p+"prod1:a:b", p+"prod1")),
		"a common name of somebody else":                request(t, subject("admin", p+"prod1")),
		"alternative names":                             request(t, named),
		"the organization of a cluster, with a newline": request(t, subject(p+"prod1:a", p+"prod1\n")),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := identity.ParseRequest(raw, "prod1")
			require.ErrorIs(t, err, identity.ErrNoAgentRequest)
		})
	}
}
