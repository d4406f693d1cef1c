// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"context"
	"errors"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/webhook"
	"github.com/kubectl-ocm/kubectl-ocm/internal/identity"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

// JoinToken knows three tokens.
func (h *stated) JoinToken(_ context.Context, credential string) (webhook.JoinToken, bool, error) {
	t, ok := map[string]webhook.JoinToken{
		"JTI=one": {ID: "one", Credential: "JTI=one", Cluster: "c1"},
		"JTI=ten": {ID: "ten", Credential: "JTI=ten", Cluster: "c10"},
		"JTI=any": {ID: "any", Credential: "JTI=any"},
	}[credential]
	return t, ok, h.broken
}

func TestATokenCreatesItsOwnClusterOnly(t *testing.T) {
	token := func(user string, credentials ...string) authenticationv1.UserInfo {
		return authenticationv1.UserInfo{Username: user, Groups: []string{"system:authenticated"},
			Extra: map[string]authenticationv1.ExtraValue{clusterv1.ExtraCredentialID: credentials}}
	}
	group := func(clusters ...string) authenticationv1.UserInfo {
		u := authenticationv1.UserInfo{Username: "system:bootstrap:abcdef", Groups: []string{clusterv1.GroupBootstrap}}
		for _, c := range clusters {
			u.Groups = append(u.Groups, clusterv1.GroupPrefixBootstrapCluster+c)
		}
		return u
	}
	const says = "kubectl ocm hub token create --cluster c1"
	for name, tc := range map[string]struct {
		user authenticationv1.UserInfo
		code int32
	}{
		"a token of this cluster":              {token(identity.BootstrapUser, "JTI=one"), 0},
		"a token of any":                       {token(identity.BootstrapUser, "JTI=any"), 0},
		"a token that nobody made here":        {token(identity.BootstrapUser, "JTI=foreign"), 0},
		"a token of a name that begins so":     {token(identity.BootstrapUser, "JTI=ten"), 403},
		"one good credential and a bad one":    {token(identity.BootstrapUser, "JTI=one", "JTI=ten"), 403},
		"somebody else":                        {token("ann", "JTI=ten"), 0},
		"a bootstrap token of this cluster":    {group("c1"), 0},
		"a bootstrap token of two":             {group("c2", "c1"), 0},
		"a bootstrap token of any":             {group(), 0},
		"a bootstrap token of a name so begun": {group("c10"), 403},
		"a bootstrap token of no name":         {group(""), 403},
	} {
		t.Run(name, func(t *testing.T) {
			h := server(&stated{rights: []string{"create managedclustersets/join s1"}}, all)
			text := ""
			if tc.code != 0 {
				text = says
			}
			check(t, send(t, h, webhook.PathValidateCluster, nil, mc(), tc.user), tc.code, text)
		})
	}
	h := server(&stated{rights: []string{"create managedclustersets/join s1"}, broken: errors.New("away")}, all)
	check(t, send(t, h, webhook.PathValidateCluster, nil, mc(), token(identity.BootstrapUser, "JTI=one")), 500, "")
}
