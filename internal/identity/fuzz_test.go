// SPDX-License-Identifier: Apache-2.0

package identity_test

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kubectl-ocm/kubectl-ocm/internal/identity"
)

// FuzzParseUser: every user name of an agent belongs to exactly one cluster, and formats
// as it was parsed.
func FuzzParseUser(f *testing.F) {
	for _, seed := range []string{
		"", "system:open-cluster-management:", "system:open-cluster-management:prod1:agent", "system:open-cluster-management:prod10:agent",
		"system:open-cluster-management:prod1:a:b", "system:open-cluster-management:managed-clusters", "system:open-cluster-management:managed-clusters:a",
		"system:open-cluster-management:cluster:c1:addon:a:agent:a", "system:open-cluster-management:prod1:\x00", "open-cluster-management:prod1",
		"system:serviceaccount:open-cluster-management:agent-registration-bootstrap", "system:bootstrap:abcdef",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, user string) {
		agent, ok := identity.ParseUser(user)
		if !ok {
			require.Zero(t, agent)
			return
		}
		require.Equal(t, user, agent.User())
		require.Empty(t, validation.IsDNS1123Label(agent.Cluster))
		require.NotEmpty(t, agent.Name)
		require.False(t, strings.ContainsFunc(agent.Name, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == ':' }), "%q", agent.Name)
		clusters, _ := identity.Clusters([]string{identity.ClusterGroup(agent.Cluster)})
		require.LessOrEqual(t, len(clusters), 1)
		again, ok := identity.ParseUser(agent.User())
		require.True(t, ok)
		require.Equal(t, agent, again)
	})
}

// FuzzParseRequest: every request that is accepted asks for that agent of the labelled
// cluster and nothing else, and is accepted for no other cluster.
func FuzzParseRequest(f *testing.F) {
	const p = "system:open-cluster-management:"
	good := request(f, subject(p+"prod1:a", p+"prod1", p+"managed-clusters"))
	f.Add(good, "prod1")
	f.Add(good, "prod10")
	f.Add(good, "")
	f.Add(request(f, subject(p+"prod10:a", p+"prod10")), "prod1")
	f.Add(request(f, subject(p+"prod1:a", p+"prod1", p+"prod10")), "prod1")
	f.Add(request(f, subject(p+"managed-clusters:a", p+"managed-clusters")), "managed-clusters")
	f.Add(append(bytes.Clone(good), good...), "prod1")
	f.Add([]byte("-----BEGIN CERTIFICATE REQUEST-----\n-----END CERTIFICATE REQUEST-----\n"), "prod1")
	f.Fuzz(func(t *testing.T, raw []byte, cluster string) {
		agent, err := identity.ParseRequest(raw, cluster)
		if err != nil {
			require.ErrorIs(t, err, identity.ErrNoAgentRequest)
			require.Zero(t, agent)
			return
		}
		require.LessOrEqual(t, len(raw), identity.MaxRequest)
		require.Equal(t, cluster, agent.Cluster)
		require.Empty(t, validation.IsDNS1123Label(cluster))
		b, rest := pem.Decode(raw)
		require.Empty(t, bytes.TrimSpace(rest))
		asked, err := x509.ParseCertificateRequest(b.Bytes)
		require.NoError(t, err)
		require.NoError(t, asked.CheckSignature())
		require.Equal(t, agent.User(), asked.Subject.CommonName)
		clusters, _ := identity.Clusters(asked.Subject.Organization)
		require.Equal(t, []string{cluster}, slices.Compact(clusters))
		_, err = identity.ParseRequest(raw, cluster+"0")
		require.Error(t, err, "it is of one cluster only")
	})
}
