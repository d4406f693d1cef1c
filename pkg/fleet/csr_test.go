// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// asked is a request as an agent with a join token sends it; tests change it.
type asked struct {
	cluster, cn, user, signer string
	organizations, groups     []string
	usages                    []any
	dns                       []string
	credential                string
}

func (a asked) object(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: a.cn, Organization: a.organizations}, DNSNames: a.dns}, key)
	require.NoError(t, err)
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"request":    base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})),
		"signerName": a.signer, "usages": a.usages, "username": a.user,
		"extra": map[string]any{"authentication.kubernetes.io/credential-id": []any{a.credential}},
	}}}
	require.NoError(t, unstructured.SetNestedStringSlice(u.Object, a.groups, "spec", "groups"))
	u.SetName("c1-x")
	u.SetLabels(map[string]string{"open-cluster-management.io/cluster-name": a.cluster})
	return u
}

func TestRequestsAreTrustedByExactIdentity(t *testing.T) {
	const account = "system:serviceaccount:open-cluster-management:agent-registration-bootstrap"
	tokens := []TokenInfo{{ID: "abc123", Type: "serviceaccount", Cluster: "other", credential: "JTI=bound"}}
	for name, tc := range map[string]struct {
		change func(*asked)
		state  string
		reason string
	}{
		"an agent with a join token": {func(*asked) {}, StatePending, ""},
		"an agent with a bootstrap token": {func(a *asked) {
			a.user, a.groups = "system:bootstrap:abcdef", []string{"system:bootstrappers:managedcluster"}
		}, StatePending, ""},
		"a bootstrap token for this cluster, its Secret gone": {func(a *asked) {
			a.user, a.groups = "system:bootstrap:abcdef", []string{"system:bootstrappers:managedcluster", "system:bootstrappers:managedcluster:c1"}
		}, StatePending, ""},
		"a bootstrap token for another cluster, its Secret gone": {func(a *asked) {
			a.user, a.groups = "system:bootstrap:abcdef", []string{"system:bootstrappers:managedcluster", "system:bootstrappers:managedcluster:c10"}
		}, StateUntrusted, "for cluster c10 only"},
		"a renewal":                        {func(a *asked) { a.user, a.groups = a.cn, []string{"system:open-cluster-management:c1"} }, StatePending, ""},
		"a user that is vouched for":       {func(a *asked) { a.user = "alice" }, StatePending, ""},
		"a user that is not":               {func(a *asked) { a.user = "bob" }, StateUntrusted, "no bootstrap identity"},
		"a name that only begins so":       {func(a *asked) { a.user = account + "-2" }, StateUntrusted, "no bootstrap identity"},
		"a bootstrap user that is longer":  {func(a *asked) { a.user = "system:bootstrap:abcdefg" }, StateUntrusted, "no bootstrap identity"},
		"the account without its group":    {func(a *asked) { a.groups = []string{"system:authenticated"} }, StateUntrusted, "groups"},
		"the agent of another cluster":     {func(a *asked) { a.cn = "system:open-cluster-management:c2:a" }, StateUntrusted, "not an agent of c1"},
		"a cluster whose name only begins": {func(a *asked) { a.cn = "system:open-cluster-management:c10:a" }, StateUntrusted, "not an agent of c1"},
		"an agent without a name":          {func(a *asked) { a.cn = "system:open-cluster-management:c1:" }, StateUntrusted, "not an agent of c1"},
		"an agent with two names":          {func(a *asked) { a.cn = "system:open-cluster-management:c1:a:b" }, StateUntrusted, "not an agent of c1"},
		"one group more":                   {func(a *asked) { a.organizations = append(a.organizations, "system:masters") }, StateUntrusted, "asks for the groups"},
		"one group less":                   {func(a *asked) { a.organizations = a.organizations[:1] }, StateUntrusted, "asks for the groups"},
		"an alternative name":              {func(a *asked) { a.dns = []string{"hub"} }, StateUntrusted, "alternative names"},
		"another signer":                   {func(a *asked) { a.signer = "kubernetes.io/kubelet-serving" }, StateUntrusted, "asks the signer"},
		"another usage":                    {func(a *asked) { a.usages = append(a.usages, "server auth") }, StateUntrusted, "asks for the usage"},
		"no label":                         {func(a *asked) { a.cluster = "" }, StateUntrusted, "not an agent of"},
		"a token for another cluster":      {func(a *asked) { a.credential = "JTI=bound" }, StateUntrusted, "for cluster other only"},
	} {
		t.Run(name, func(t *testing.T) {
			a := asked{cluster: "c1", cn: "system:open-cluster-management:c1:agent", user: account, signer: "kubernetes.io/kube-apiserver-client",
				organizations: []string{"system:open-cluster-management:managed-clusters", "system:open-cluster-management:c1"},
				groups:        []string{"system:serviceaccounts", "system:serviceaccounts:open-cluster-management"}, usages: []any{"digital signature", "client auth"}}
			tc.change(&a)
			q := parseRequest(a.object(t), []string{"alice"}, tokens)
			require.Equal(t, tc.state, q.State, q.Reason)
			require.Contains(t, q.Reason, tc.reason)
		})
	}
}

func TestWhatIsNoRequestIsUntrusted(t *testing.T) {
	for _, text := range []string{"", "!", base64.StdEncoding.EncodeToString([]byte("hello"))} {
		u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"request": text}}}
		require.Equal(t, StateUntrusted, parseRequest(u, nil, nil).State)
	}
}
