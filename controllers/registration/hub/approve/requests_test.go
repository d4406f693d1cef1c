// SPDX-License-Identifier: Apache-2.0

package approve

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/internal/identity"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

// certificate returns one issued for the agent.
func certificate(t *testing.T, cn string, end time.Time) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: cn}, NotAfter: end}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// asked returns the CSR that an agent of the cluster creates.
func asked(t testing.TB, cluster, agent string) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{
		CommonName:   clusterv1.UserPrefix + cluster + ":" + agent,
		Organization: []string{clusterv1.UserPrefix + cluster, clusterv1.GroupManagedClusters},
	}}, key)
	require.NoError(t, err)
	csr := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{
		Name:   cluster + "-" + agent,
		UID:    types.UID(cluster + agent),
		Labels: map[string]string{clusterv1.LabelClusterName: cluster},
	}}
	csr.Spec.Request = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
	csr.Spec.SignerName, csr.Spec.Usages = clusterv1.SignerName, []certificatesv1.KeyUsage{
		certificatesv1.UsageClientAuth,
	}
	return csr
}

func TestRequestsAreParsedOnceAndFollowed(t *testing.T) {
	q := newRequests()
	first := asked(t, "c1", "a")
	q.Observe(nil, first)
	require.Equal(t, identity.Agent{Cluster: "c1", Name: "a"}, q.Of("c1")[0].Agent)

	// Immutable content is not parsed again: this form could not be parsed.
	second := first.DeepCopy()
	second.Spec.Request = nil
	second.Status.Certificate = certificate(t, "somebody", now)
	q.Observe(first, second)
	require.NoError(t, q.Of("c1")[0].Fault)
	require.Nil(t, q.Of("c1")[0].Expires, "a certificate of another user does not count")

	third := second.DeepCopy()
	third.Status.Certificate = []byte("rubbish")
	q.Observe(second, third)
	require.Nil(t, q.Of("c1")[0].Expires)
	fourth := third.DeepCopy()
	fourth.Status.Certificate = certificate(t, clusterv1.UserPrefix+"c1:a", now)
	q.Observe(third, fourth)
	require.Equal(t, new(now), q.Of("c1")[0].Expires)

	// Another label makes it another cluster's request, whose form it does not have.
	moved := fourth.DeepCopy()
	moved.Labels[clusterv1.LabelClusterName] = "c2"
	q.Observe(fourth, moved)
	require.Zero(t, q.Count("c1"))
	require.ErrorIs(t, q.Of("c2")[0].Fault, identity.ErrNoAgentRequest)
	q.Observe(moved, nil)
	require.Zero(t, q.Count("c2"))
	require.Empty(t, q.clusters)
}

func TestAnotherRequestOfTheSameNameIsAnotherOne(t *testing.T) {
	q := newRequests()
	old, current := asked(t, "c1", "a"), asked(t, "c1", "b")
	current.UID = "other"
	q.Observe(nil, old)
	q.Observe(old, current)
	require.Equal(t, 1, q.Count("c1"))
	require.Equal(t, "b", q.Of("c1")[0].Agent.Name)
}

func TestReservedNamesAreNeverAnswered(t *testing.T) {
	for _, name := range []string{"kube-system", "default", "work"} {
		q := newRequests()
		q.Observe(nil, asked(t, name, "a"))
		require.ErrorIs(t, q.Of(name)[0].Fault, identity.ErrNoAgentRequest)
	}
}

func TestTokensFindTheirOpenRequests(t *testing.T) {
	q := newRequests()
	for i, answer := range []certificatesv1.RequestConditionType{"", certificatesv1.CertificateApproved} {
		csr := asked(t, fmt.Sprintf("c%d", i), "a")
		csr.Spec.Extra = map[string]certificatesv1.ExtraValue{clusterv1.ExtraCredentialID: {"JTI=a"}}
		if answer != "" {
			csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: answer}}
		}
		q.Observe(nil, csr)
	}
	require.Equal(t, []string{"c0"}, q.With("JTI=a", isOpen))
	require.Empty(t, q.With("JTI=b", isOpen))
}

func TestWhatIsTooLargeIsNotKept(t *testing.T) {
	good := asked(t, "c1", "a")
	good.Annotations = map[string]string{"a": "b"}
	kept, err := TrimRequest(good.DeepCopy())
	require.NoError(t, err)
	require.Equal(t, good, kept)
	for name, change := range map[string]func(*certificatesv1.CertificateSigningRequest){
		"a request of a megabyte": func(csr *certificatesv1.CertificateSigningRequest) {
			csr.Spec.Request = append(csr.Spec.Request, make([]byte, 1<<20)...)
		},
		"annotations": func(csr *certificatesv1.CertificateSigningRequest) {
			csr.Annotations["b"] = strings.Repeat("x", 100<<10)
		},
	} {
		t.Run(name, func(t *testing.T) {
			csr := good.DeepCopy()
			change(csr)
			out, err := TrimRequest(csr)
			require.NoError(t, err)
			require.Less(t, out.(*certificatesv1.CertificateSigningRequest).Size(), 1<<10)
			q := newRequests()
			q.Observe(nil, csr)
			require.ErrorIs(t, q.Of("c1")[0].Fault, identity.ErrNoAgentRequest)
		})
	}
}

// BenchmarkFlood is one pass over a cluster with 10,000 open requests.
func BenchmarkFlood(b *testing.B) {
	q, one := newRequests(), asked(b, "c1", "a")
	for i := range 10_000 {
		csr := one.DeepCopy()
		csr.UID, csr.Name = types.UID(fmt.Sprint(i)), fmt.Sprintf("c1-%d", i)
		q.Observe(nil, csr)
	}
	mc := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "c1"}}
	for b.Loop() {
		Decide(State{Cluster: mc, Requests: q.Of("c1"), Now: now})
	}
}

// TestTheReviewHoldsTheWholeIdentity: a review without the requester's extra fields asks
// about another identity (ocm#1427).
func TestTheReviewHoldsTheWholeIdentity(t *testing.T) {
	csr := &certificatesv1.CertificateSigningRequest{}
	csr.Spec.Username, csr.Spec.UID, csr.Spec.Groups = "u", "id", []string{"g"}
	csr.Spec.Extra = map[string]certificatesv1.ExtraValue{"k": {"a", "b"}}
	got := renewalReview(csr, "prod1").Spec
	require.Equal(t, authorizationv1.SubjectAccessReviewSpec{
		User: "u", UID: "id", Groups: []string{"g"}, Extra: map[string]authorizationv1.ExtraValue{"k": {"a", "b"}},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Group:       "register.open-cluster-management.io",
			Resource:    "managedclusters",
			Subresource: "clientcertificates",
			Verb:        "renew",
			Name:        "prod1",
		},
	}, got)
}
