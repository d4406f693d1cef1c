// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
)

const kube = addonv1alpha1.KubeAPIServerSigner

var start = time.Date(2030, 1, 2, 3, 0, 0, 0, time.UTC)

// encoded is a signed certificate request.
func encoded(t *testing.T, template x509.CertificateRequest) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.CreateCertificateRequest(rand.Reader, &template, key)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

func subject(user string, groups ...string) x509.CertificateRequest {
	return x509.CertificateRequest{Subject: pkix.Name{CommonName: user, Organization: groups}, DNSNames: []string{"web.addon.open-cluster-management.io"}}
}

const (
	defaultUser   = "system:open-cluster-management:cluster:cluster1:addon:web:agent:web"
	ownGroup      = "system:open-cluster-management:cluster:cluster1:addon:web"
	everybodysOwn = "system:open-cluster-management:addon:web"
)

// csr is the request that the agent of cluster1 makes for the add-on web.
func csr(t *testing.T) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: "addon-cluster1-web-x7", Labels: map[string]string{
			"open-cluster-management.io/cluster-name": "cluster1", "open-cluster-management.io/addon-name": "web",
		}},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Username: "system:open-cluster-management:cluster1:agent1", SignerName: kube,
			Usages:  []certificatesv1.KeyUsage{"digital signature", "key encipherment", "client auth"},
			Request: encoded(t, subject(defaultUser, everybodysOwn, ownGroup)),
		},
	}
}

func instance() addonkit.Instance {
	return addonkit.Instance{AddOn: &addonv1alpha1.ManagedClusterAddOn{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster1", Name: "web"}}}
}

type request = certificatesv1.CertificateSigningRequest

func asks(t *testing.T, template x509.CertificateRequest) func(*request) {
	raw := encoded(t, template)
	return func(r *request) { r.Spec.Request = raw }
}

func TestWhichRequestsAreApproved(t *testing.T) {
	with := func(change func(*x509.CertificateRequest)) x509.CertificateRequest {
		s := subject(defaultUser, ownGroup, everybodysOwn)
		change(&s)
		return s
	}
	for name, tc := range map[string]struct {
		change func(*request)
		want   string
	}{
		"the agent's": {func(*request) {}, ""},
		"with the group of older agents": {
			asks(t, subject(defaultUser, ownGroup, everybodysOwn, "system:authenticated")),
			"",
		},
		"without a DNS name": {asks(t, with(func(s *x509.CertificateRequest) { s.DNSNames = nil })), ""},
		"another name":       {func(r *request) { r.Name = "csr-1" }, "its name and labels are not those"},
		"the label of another cluster": {
			func(r *request) { r.Labels["open-cluster-management.io/cluster-name"] = "cluster10" },
			"its name and labels are not those",
		},
		"the label of another add-on": {
			func(r *request) { r.Labels["open-cluster-management.io/addon-name"] = "webs" },
			"its name and labels are not those",
		},
		"the agent of cluster10": {
			func(r *request) { r.Spec.Username = "system:open-cluster-management:cluster10:agent1" },
			"is not an agent of cluster cluster1",
		},
		"the prefix alone": {
			func(r *request) { r.Spec.Username = "system:open-cluster-management:cluster1" },
			"is not an agent of cluster cluster1",
		},
		"the add-on itself": {func(r *request) { r.Spec.Username = defaultUser }, "is not an agent of cluster cluster1"},
		"another signer":    {func(r *request) { r.Spec.SignerName = "example.com/other" }, "is not that of a registration"},
		"a usage of servers": {
			func(r *request) { r.Spec.Usages = append(r.Spec.Usages, certificatesv1.UsageServerAuth) },
			`usage "server auth"`,
		},
		"no request":           {func(r *request) { r.Spec.Request = []byte("x") }, "reading it"},
		"another user":         {asks(t, subject(defaultUser+"s", ownGroup, everybodysOwn)), "its user is"},
		"any third group":      {asks(t, subject(defaultUser, ownGroup, everybodysOwn, "system:masters")), "its groups are"},
		"a group twice":        {asks(t, subject(defaultUser, ownGroup, everybodysOwn, ownGroup)), "its groups are"},
		"one group is missing": {asks(t, subject(defaultUser, ownGroup)), "its groups are"},
		"the group of another cluster": {
			asks(t, subject(defaultUser, everybodysOwn, "system:open-cluster-management:cluster:cluster10:addon:web")),
			"its groups are",
		},
		"an organizational unit": {
			asks(t, with(func(s *x509.CertificateRequest) { s.Subject.OrganizationalUnit = []string{"u"} })),
			"organizational units",
		},
		"another attribute": {
			asks(t, with(func(s *x509.CertificateRequest) { s.Subject.Country = []string{"DE"} })),
			"attribute 2.5.4.6",
		},
		"another DNS name": {
			asks(t, with(func(s *x509.CertificateRequest) { s.DNSNames = []string{"kubernetes.default"} })),
			"other names than web.addon.open-cluster-management.io",
		},
		"an address": {
			asks(t, with(func(s *x509.CertificateRequest) { s.IPAddresses = []net.IP{net.IPv4(10, 0, 0, 1)} })),
			"other names than",
		},
		"another extension": {
			asks(t, with(func(s *x509.CertificateRequest) {
				s.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 19}, Value: []byte{0x30, 0x03, 0x01, 0x01, 0xff}}}
			})),
			"extension 2.5.29.19",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := csr(t)
			tc.change(r)
			err := KubeClient{}.Approve(context.Background(), instance(), r)
			if tc.want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, tc.want)
			}
		})
	}
}

func TestTheSignatureOfARequestCounts(t *testing.T) {
	r := csr(t)
	block, _ := pem.Decode(r.Spec.Request)
	block.Bytes[len(block.Bytes)-1] ^= 1
	r.Spec.Request = pem.EncodeToMemory(block)
	err := KubeClient{}.Approve(context.Background(), instance(), r)
	require.ErrorContains(t, err, "its signature does not match its key")
}

func TestRequestsForOtherRegistrations(t *testing.T) {
	registrations := []addonv1alpha1.RegistrationConfig{
		{SignerName: kube},
		{
			SignerName: "example.com/signer",
			Subject:    addonv1alpha1.Subject{User: "me", Groups: []string{"g"}, OrganizationUnits: []string{"u"}},
		},
	}
	r := csr(t)
	r.Spec.Request = encoded(t, subject(defaultUser, ownGroup))
	require.NoError(t, Check(r, instance(), registrations), "without a subject the agent asks only for its own group")
	r.Spec.SignerName = "example.com/signer"
	r.Spec.Request = encoded(t, x509.CertificateRequest{Subject: pkix.Name{CommonName: "me", Organization: []string{"g"}, OrganizationalUnit: []string{"u"}}})
	require.NoError(t, Check(r, instance(), registrations))
	r.Spec.Request = encoded(t, x509.CertificateRequest{Subject: pkix.Name{CommonName: "me", Organization: []string{"g"}}})
	require.ErrorContains(t, Check(r, instance(), registrations), "organizational units")
}

func TestAnotherAgentName(t *testing.T) {
	r := csr(t)
	require.ErrorContains(t, KubeClient{AgentName: "web-agent"}.Approve(context.Background(), instance(), r), "its user is")
	r.Spec.Request = encoded(t, subject(ownGroup+":agent:web-agent", ownGroup, everybodysOwn))
	require.NoError(t, KubeClient{AgentName: "web-agent"}.Approve(context.Background(), instance(), r))
	got, err := KubeClient{}.Registrations(context.Background(), instance())
	require.NoError(t, err)
	require.Equal(
		t,
		[]addonv1alpha1.RegistrationConfig{{SignerName: kube, Subject: addonv1alpha1.Subject{User: defaultUser, Groups: []string{ownGroup, everybodysOwn}}}},
		got,
	)
}

func TestApprovalAndWhatIsLeftToSign(t *testing.T) {
	r := csr(t)
	require.True(t, Open(r))
	require.False(t, ToSign(r))
	approved := Approved(r, start)
	require.Empty(t, r.Status.Conditions, "the request of the cache is left alone")
	require.False(t, Open(approved))
	c := approved.Status.Conditions[0]
	require.Equal(t, "AutoApprovedByHubCSRApprovingController", c.Reason)
	require.Equal(t, "Auto approving addon agent certificate.", c.Message)
	require.True(t, c.LastUpdateTime.Time.Equal(start))
	require.False(t, ToSign(approved), "Kubernetes signs for its own signer")

	approved.Spec.SignerName = "example.com/signer"
	require.True(t, ToSign(approved))
	for name, change := range map[string]func(*request){
		"signed": func(r *request) { r.Status.Certificate = []byte("x") },
		"denied": func(r *request) {
			r.Status.Conditions = append(r.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{Type: certificatesv1.CertificateDenied})
		},
		"failed": func(r *request) {
			r.Status.Conditions = append(r.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{Type: certificatesv1.CertificateFailed})
		},
	} {
		done := approved.DeepCopy()
		change(done)
		require.False(t, ToSign(done), name)
		require.False(t, Open(done), name)
	}
}
