// SPDX-License-Identifier: Apache-2.0

package request

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
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
	der, err := x509.CreateCertificateRequest(rand.Reader,
		&x509.CertificateRequest{Subject: pkix.Name{CommonName: a.cn, Organization: a.organizations}, DNSNames: a.dns}, key)
	require.NoError(t, err)
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"request": base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST",
			Bytes: der})),
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
	tokens := []Token{{ID: "abc123", Type: "serviceaccount", Cluster: "other", credential: "JTI=bound"}}
	for name, tc := range map[string]struct {
		change func(*asked)
		state  string
		reason string
	}{
		"an agent with a join token": {func(*asked) {}, StatePending, ""},
		"an agent with a bootstrap token": {func(a *asked) {
			a.user, a.groups = "system:bootstrap:abcdef", []string{"system:bootstrappers:managedcluster"}
		}, StatePending, ""},
		"a bootstrap token for this cluster, its Secret gone": {
			func(a *asked) {
				a.user, a.groups = "system:bootstrap:abcdef",
					[]string{"system:bootstrappers:managedcluster", "system:bootstrappers:managedcluster:c1"}
			},
			StatePending,
			"",
		},
		"a bootstrap token for two clusters": {
			func(a *asked) {
				a.user, a.groups = "system:bootstrap:abcdef",
					[]string{"system:bootstrappers:managedcluster", "system:bootstrappers:managedcluster:c2",
						"system:bootstrappers:managedcluster:c1"}
			},
			StatePending,
			"",
		},
		"a bootstrap token for another cluster, its Secret gone": {
			func(a *asked) {
				a.user, a.groups = "system:bootstrap:abcdef",
					[]string{"system:bootstrappers:managedcluster", "system:bootstrappers:managedcluster:c10"}
			},
			StateUntrusted,
			"for cluster c10 only",
		},
		"a renewal": {
			func(a *asked) { a.user, a.groups = a.cn, []string{"system:open-cluster-management:c1"} },
			StatePending,
			"",
		},
		"a user that is vouched for": {func(a *asked) { a.user = "alice" }, StatePending, ""},
		"a user that is not":         {func(a *asked) { a.user = "bob" }, StateUntrusted, "not a bootstrap identity"},
		"a name that only begins so": {
			func(a *asked) { a.user = account + "-2" },
			StateUntrusted,
			"not a bootstrap identity",
		},
		"a bootstrap user that is longer": {
			func(a *asked) { a.user = "system:bootstrap:abcdefg" },
			StateUntrusted,
			"not a bootstrap identity",
		},
		"the account without its group": {
			func(a *asked) { a.groups = []string{"system:authenticated"} },
			StateUntrusted,
			"groups",
		},
		"the agent of another cluster": {
			func(a *asked) { a.cn = "system:open-cluster-management:c2:a" },
			StateUntrusted,
			"its common name is",
		},
		"a cluster whose name only begins": {
			func(a *asked) { a.cn = "system:open-cluster-management:c10:a" },
			StateUntrusted,
			"its common name is",
		},
		"an agent without a name": {
			func(a *asked) { a.cn = "system:open-cluster-management:c1:" },
			StateUntrusted,
			"its common name is",
		},
		"an agent whose name clears a terminal": {
			func(a *asked) { a.cn = "system:open-cluster-management:c1:\x1b[2J" },
			StateUntrusted,
			"its common name is",
		},
		"an agent with two names": {
			func(a *asked) { a.cn = "system:open-cluster-management:c1:a:b" },
			StateUntrusted,
			"its common name is",
		},
		"one group more": {func(a *asked) { a.organizations = append(a.organizations, "system:masters") }, StateUntrusted,
			"its organizations are"},
		"one group less": {
			func(a *asked) { a.organizations = a.organizations[:1] },
			StateUntrusted,
			"its organizations are",
		},
		"without the group of all agents": {func(a *asked) { a.organizations = a.organizations[1:] }, StatePending, ""},
		"a name that no cluster may have": {
			func(a *asked) {
				a.cluster, a.cn, a.organizations = "default", "system:open-cluster-management:default:agent",
					[]string{"system:open-cluster-management:default"}
			},
			StateUntrusted,
			"reserved",
		},
		"an alternative name": {func(a *asked) { a.dns = []string{"hub"} }, StateUntrusted, "alternative names"},
		"another signer": {
			func(a *asked) { a.signer = "kubernetes.io/kubelet-serving" },
			StateUntrusted,
			"asks the signer",
		},
		"another usage": {
			func(a *asked) { a.usages = append(a.usages, "server auth") },
			StateUntrusted,
			"asks for the usage",
		},
		"no label": {func(a *asked) { a.cluster = "" }, StateUntrusted, "not usable as a namespace"},
		"a token for another cluster": {
			func(a *asked) { a.credential = "JTI=bound" },
			StateUntrusted,
			"for cluster other only",
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := asked{cluster: "c1", cn: "system:open-cluster-management:c1:agent", user: account,
				signer:        "kubernetes.io/kube-apiserver-client",
				organizations: []string{"system:open-cluster-management:managed-clusters", "system:open-cluster-management:c1"},
				groups:        []string{"system:serviceaccounts", "system:serviceaccounts:open-cluster-management"},
				usages:        []any{"digital signature", "client auth"}}
			tc.change(&a)
			q := Parse(a.object(t), []string{"alice"}, tokens)
			require.Equal(t, tc.state, q.State, q.Reason)
			require.Contains(t, q.Reason, tc.reason)
		})
	}
}

func TestWhatIsNoRequestIsUntrusted(t *testing.T) {
	for _, text := range []string{"", "!", base64.StdEncoding.EncodeToString([]byte("hello"))} {
		u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"request": text}}}
		require.Equal(t, StateUntrusted, Parse(u, nil, nil).State)
	}
}

func TestRefusalsAreTold(t *testing.T) {
	for name, tc := range map[string]struct {
		condition map[string]any
		state     string
		reason    string
	}{
		"denied with words": {
			map[string]any{"type": "Denied", "status": "True", "reason": "TokenRevoked", "message": "it was revoked\nlong ago"},
			StateDenied,
			"TokenRevoked: it was revoked long ago",
		},
		"denied without words": {map[string]any{"type": "Denied", "status": "True"}, StateDenied, "no reason was given"},
		"denied with a reason": {
			map[string]any{"type": "Denied", "status": "True", "reason": "KubectlDeny"},
			StateDenied,
			"KubectlDeny",
		},
		"failed": {
			map[string]any{"type": "Failed", "status": "True", "reason": "SignerValidationFailure", "message": "no"},
			StateFailed,
			"SignerValidationFailure: no",
		},
		"approved": {map[string]any{"type": "Approved", "status": "True", "reason": "x"}, StateApproved, ""},
	} {
		t.Run(name, func(t *testing.T) {
			u := &unstructured.Unstructured{Object: map[string]any{}}
			require.NoError(t, unstructured.SetNestedSlice(u.Object, []any{tc.condition}, "status", "conditions"))
			q := Parse(u, nil, nil)
			require.Equal(t, tc.state, q.State)
			require.Equal(t, tc.reason, q.Reason)
		})
	}
}

// What the hub would not answer is not approved manually either, and costs little to check.
func TestWeakKeysAndLargeRequestsAreNotTrusted(t *testing.T) {
	weak, err := rsa.GenerateKey(rand.Reader, 1024)
	require.NoError(t, err)
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{
		CommonName:   "system:open-cluster-management:c1:a",
		Organization: []string{"system:open-cluster-management:c1", "system:open-cluster-management:managed-clusters"},
	}}, weak)
	require.NoError(t, err)
	for name, tc := range map[string]struct {
		request []byte
		reason  string
	}{
		"a weak key":      {pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), "1024 bits"},
		"a large request": {bytes.Repeat([]byte("-----BEGIN "), 100_000), "more than 4096"},
	} {
		t.Run(name, func(t *testing.T) {
			u := asked{cluster: "c1", signer: "kubernetes.io/kube-apiserver-client", user: "alice"}.object(t)
			require.NoError(t, unstructured.SetNestedField(u.Object, base64.StdEncoding.EncodeToString(tc.request), "spec",
				"request"))
			q := Parse(u, []string{"alice"}, nil)
			require.Equal(t, StateUntrusted, q.State)
			require.Contains(t, q.Reason, tc.reason)
		})
	}
}
