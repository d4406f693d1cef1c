// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/webhook"
	"github.com/kubectl-ocm/kubectl-ocm/internal/identity"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
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

// What a cluster brings along when it joins decides nothing about other clusters.
func TestWhoJoinsGivesItsClusterOnlyWhatAgentsDo(t *testing.T) {
	h := server(&stated{rights: []string{"create managedclustersets/join s1", "create managedclustersets/join default"}}, all)
	finalizer := func(name string) func(*clusterv1.ManagedCluster) {
		return func(o *clusterv1.ManagedCluster) { o.Finalizers = append(o.Finalizers, name) }
	}
	joiners := map[string]authenticationv1.UserInfo{
		"a token":                      {Username: identity.BootstrapUser},
		"a bootstrap token":            {Username: "system:bootstrap:abcdef", Groups: []string{clusterv1.GroupBootstrap}},
		"a bootstrap token of its own": {Username: "system:bootstrap:abcdef", Groups: []string{clusterv1.GroupPrefixBootstrapCluster + "c1"}},
	}
	for what, tc := range map[string]struct {
		change func(*clusterv1.ManagedCluster)
		text   string
	}{
		"nothing":                 {func(*clusterv1.ManagedCluster) {}, ""},
		"what agents bring along": {annotated(clusterv1.AnnotationPrefixAgent+"/a", "b"), ""},
		"what kubectl adds":       {annotated("kubectl.kubernetes.io/last-applied-configuration", "{}"), ""},
		"another hosting cluster": {annotated(addonv1alpha1.AnnotationHostingClusterName, "c2"), "annotations[" + addonv1alpha1.AnnotationHostingClusterName + "]"},
		"values of its add-ons":   {annotated(addonv1alpha1.AnnotationValues, "{}"), addonv1alpha1.AnnotationValues},
		"registries of its own":   {annotated(clusterv1.AnnotationImageRegistries, "{}"), clusterv1.AnnotationImageRegistries},
		"a Cluster to import":     {annotated(clusterv1.AnnotationCAPICluster, "c2/c2"), clusterv1.AnnotationCAPICluster},
		"a finalizer":             {finalizer("example.com/stay"), `no finalizer "example.com/stay"`},
	} {
		for who, user := range joiners {
			t.Run(what+" by "+who, func(t *testing.T) {
				created := mc(tc.change)
				created = patched(t, created, send(t, h, webhook.PathMutateCluster, nil, created, user))
				code := int32(0)
				if tc.text != "" {
					code = 403
				}
				check(t, send(t, h, webhook.PathValidateCluster, nil, created, user), code, tc.text)
			})
		}
		if what != "a Cluster to import" {
			check(t, send(t, h, webhook.PathValidateCluster, nil, mc(tc.change), person), 0, "")
		}
	}
}

func TestWhoNamesAClusterToImportMayReadItsKubeconfig(t *testing.T) {
	const join = "create managedclustersets/join s1"
	names := func(text string) *clusterv1.ManagedCluster {
		return mc(annotated(clusterv1.AnnotationCAPICluster, text))
	}
	for name, tc := range map[string]struct {
		old, now *clusterv1.ManagedCluster
		rights   []string
		code     int32
	}{
		"created without the right":          {nil, names("fleet/one"), nil, 403},
		"created with it":                    {nil, names("fleet/one"), []string{"get secrets/ one-kubeconfig"}, 0},
		"with that to another one":           {nil, names("fleet/one"), []string{"get secrets/ one10-kubeconfig"}, 403},
		"named later":                        {mc(), names("fleet/one"), nil, 403},
		"changed":                            {names("fleet/two"), names("fleet/one"), []string{"get secrets/ two-kubeconfig"}, 403},
		"stored, and something else changes": {names("fleet/one"), mc(annotated(clusterv1.AnnotationCAPICluster, "fleet/one"), tainted()), nil, 0},
		"removed":                            {names("fleet/one"), mc(), nil, 0},
		"no name of a Cluster":               {nil, names("one"), nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			text := ""
			if tc.code != 0 {
				text = "may not get Secret fleet/one-kubeconfig"
			}
			hub := &stated{rights: append([]string{join}, tc.rights...)}
			check(t, send(t, server(hub, all), webhook.PathValidateCluster, tc.old, tc.now, person), tc.code, text)
			for _, a := range hub.about {
				require.True(t, a.Resource != "secrets" || a.Namespace == "fleet", "%+v", a)
			}
		})
	}
}
