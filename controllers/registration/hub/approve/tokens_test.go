// SPDX-License-Identifier: Apache-2.0

package approve

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/internal/identity"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

func tokenSecret(id, credential, cluster string, end time.Time) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name:        "join-token-" + id,
			Labels:      map[string]string{clusterv1.LabelJoinToken: id, "other": "x"},
			Annotations: map[string]string{"a": "b"},
		},
		Data: map[string][]byte{
			clusterv1.JoinTokenKeyCredentialID: []byte(credential), clusterv1.JoinTokenKeyCluster: []byte(cluster),
			clusterv1.JoinTokenKeyExpiration: []byte(end.Format(time.RFC3339)), "password": []byte("p"),
		},
	}
}

func sent(at time.Time, groups []string, credentials ...string) *certificatesv1.CertificateSigningRequest {
	csr := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(at)},
	}
	csr.Spec.Username, csr.Spec.Groups = identity.BootstrapUser, groups
	csr.Spec.Extra = map[string]certificatesv1.ExtraValue{clusterv1.ExtraCredentialID: credentials}
	return csr
}

func TestJudge(t *testing.T) {
	tokens := newTokens()
	for _, s := range []*corev1.Secret{
		tokenSecret("any", "JTI=any", "", now.Add(time.Hour)),
		tokenSecret("own", "JTI=own", "prod1", now.Add(time.Hour)),
		tokenSecret("ten", "JTI=ten", "prod10", now.Add(time.Hour)),
		tokenSecret("old", "JTI=old", "", now.Add(-time.Hour)),
		tokenSecret("gone", "JTI=gone", "", now.Add(time.Hour)),
		tokenSecret("cleared", "JTI=cleared", "", now.Add(-time.Hour)),
		tokenSecret("full", "JTI=full", "", now.Add(time.Hour)),
	} {
		require.NotEmpty(t, tokens.Observe(nil, s, now))
	}
	tokens.Observe(tokenSecret("gone", "JTI=gone", "", now.Add(time.Hour)), nil, now)
	tokens.Observe(tokenSecret("cleared", "JTI=cleared", "", now.Add(-time.Hour)), nil, now)
	const group = clusterv1.GroupPrefixBootstrapCluster
	for name, tc := range map[string]struct {
		csr    *certificatesv1.CertificateSigningRequest
		reason string
		says   string
	}{
		"a token for any cluster":        {sent(now, nil, "JTI=any"), "", ""},
		"the token of this cluster":      {sent(now, nil, "JTI=own"), "", ""},
		"a token that was not made here": {sent(now, nil, "JTI=foreign"), "", ""},
		"a token that others used up": {
			sent(now, nil, "JTI=full"),
			clusterv1.ReasonTokenUsedUp,
			"join token full",
		},
		"one good credential and a full one": {
			sent(now, nil, "JTI=own", "JTI=full"),
			clusterv1.ReasonTokenUsedUp,
			"join token full",
		},
		"no token": {sent(now, nil), "", ""},
		"the token of a name that begins so": {
			sent(now, nil, "JTI=ten"),
			clusterv1.ReasonTokenForAnotherCluster,
			"for cluster prod10 only",
		},
		"one good credential and a bad one": {
			sent(now, nil, "JTI=own", "JTI=ten"),
			clusterv1.ReasonTokenForAnotherCluster,
			"token ten",
		},
		"a revoked token": {
			sent(now.Add(-time.Minute), nil, "JTI=gone"),
			clusterv1.ReasonTokenRevoked,
			"was revoked",
		},
		"sent after the token's end": {
			sent(now, nil, "JTI=old"),
			clusterv1.ReasonTokenExpired,
			"expired at 2026-08-01T11:00:00Z",
		},
		"sent before the token's end":       {sent(now.Add(-2*time.Hour), nil, "JTI=old"), "", ""},
		"before the end, and cleaned up":    {sent(now.Add(-2*time.Hour), nil, "JTI=cleared"), "", ""},
		"a bootstrap token of this cluster": {sent(now, []string{clusterv1.GroupBootstrap, group + "prod1"}), "", ""},
		"a bootstrap token of two":          {sent(now, []string{group + "prod2", group + "prod1"}), "", ""},
		"a bootstrap token of any":          {sent(now, []string{clusterv1.GroupBootstrap}), "", ""},
		"a bootstrap token of a name with this prefix": {
			sent(now, []string{group + "prod10"}),
			clusterv1.ReasonTokenForAnotherCluster,
			"for cluster prod10 only",
		},
		"a bootstrap token of the shorter name": {
			sent(now, []string{group + "prod"}),
			clusterv1.ReasonTokenForAnotherCluster,
			"for cluster prod only",
		},
		"a bootstrap token of an empty name": {sent(now, []string{group}), clusterv1.ReasonTokenForAnotherCluster, ""},
		"a bootstrap token of a name and a rest": {
			sent(now, []string{group + "prod1:x"}),
			clusterv1.ReasonTokenForAnotherCluster,
			"prod1:x",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := refusalOf(tc.csr, "prod1", tokens.Get, func(t Token) bool { return t.ID != "full" })
			require.Equal(t, tc.reason, got.Reason, got.Message)
			require.Contains(t, got.Message, tc.says)
			if tc.reason != "" {
				require.Contains(t, got.Message, "kubectl ocm hub token create --cluster prod1")
			}
		})
	}
}

func TestWhoJoinedByATokenIsNoted(t *testing.T) {
	tokens := newTokens()
	tokens.Observe(nil, tokenSecret("own", "JTI=own", "", now.Add(time.Hour)), now)
	boot := sent(now, []string{clusterv1.GroupBootstrap})
	boot.Spec.Username = "system:bootstrap:abcdef"
	named := sent(now, nil)
	named.Spec.Username = "system:bootstrap:abcdef"
	for want, csr := range map[string]*certificatesv1.CertificateSigningRequest{
		"own": sent(now, nil, "JTI=own"), "": sent(now, nil, "JTI=foreign"), "abcdef": boot,
	} {
		require.Equal(t, want, tokens.idOf(csr))
	}
	require.Empty(t, tokens.idOf(named), "a user name alone is not a token")
	first, renewal := got(answeredWith(
		"a", certificatesv1.CertificateApproved, "x",
	)), got(answeredWith("a", certificatesv1.CertificateApproved, "x"))
	first.Token = "own"
	mc := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1"}}
	after := Decide(State{
		Cluster:  mc,
		Requests: []Request{first, renewal},
		Now:      now,
	}).Object.(*clusterv1.ManagedCluster)
	require.Equal(t, "own", after.Annotations[clusterv1.AnnotationJoinedBy], "a renewal does not change it")
}

func TestRevokedTokensAreForgottenInTheEnd(t *testing.T) {
	tokens := newTokens()
	s := tokenSecret("a", "JTI=a", "", now.Add(24*time.Hour))
	require.Equal(t, "JTI=a", tokens.Observe(nil, s, now))
	require.Equal(t, "JTI=a", tokens.Observe(s, nil, now))
	_, ok := tokens.Get("JTI=a")
	require.True(t, ok)
	tokens.Observe(nil, tokenSecret("b", "JTI=b", "", now), now.Add(2*time.Hour))
	_, ok = tokens.Get("JTI=a")
	require.False(t, ok)
	require.Empty(t, tokens.Observe(nil, tokenSecret("c", "", "", now), now), "the token is not made yet")
}

func TestTheCacheKeepsNoSecrets(t *testing.T) {
	in := tokenSecret("a", "JTI=a", "c1", now)
	in.Data[clusterv1.JoinTokenKeyUses] = []byte("3")
	out, err := TrimToken(in)
	require.NoError(t, err)
	s := out.(*corev1.Secret)
	require.NotContains(t, s.Data, "password")
	require.Empty(t, s.Annotations)
	require.Equal(t, Token{JoinToken: identity.JoinToken{ID: "a", Credential: "JTI=a", Limit: 3}, Cluster: "c1", Expires: now}, readToken(s))
	for _, key := range []string{clusterv1.JoinTokenKeyCluster, clusterv1.JoinTokenKeyUses} {
		in.Data[key] = []byte(strings.Repeat("1", maxMetadata+1))
	}
	out, err = TrimToken(in)
	require.NoError(t, err)
	large := readToken(out.(*corev1.Secret))
	require.NotEmpty(t, large.Cluster, "a truncated cluster name still restricts")
	require.Equal(t, identity.Unreadable, large.Limit)
}
