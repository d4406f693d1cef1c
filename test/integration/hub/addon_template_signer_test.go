// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
)

// authority creates the Secret of a signing CA where the hub reads it, and returns the
// certificate.
func (s *scene) authority(t *testing.T, name string) *x509.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(48 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	certificate, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	_, err = s.kube.CoreV1().Secrets(hub.ComponentNamespace).Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Type: corev1.SecretTypeTLS, Data: map[string][]byte{
			corev1.TLSCertKey:       pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
			corev1.TLSPrivateKeyKey: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}),
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	return certificate
}

// letSign grants the add-on manager the right to sign with the named authority, as an
// administrator or a chart of the add-on does.
func (s *scene) letSign(t *testing.T, name string) {
	t.Helper()
	to := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: hub.ComponentNamespace, Name: hub.AddOnManager}}
	meta := metav1.ObjectMeta{Name: name}
	rbac := s.kube.RbacV1()
	_, err := rbac.Roles(hub.ComponentNamespace).Create(t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{name}, Verbs: []string{"get"}},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = rbac.RoleBindings(hub.ComponentNamespace).Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: meta, Subjects: to,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}}, metav1.CreateOptions{})
	require.NoError(t, err)
}

func TestATemplateWithASignerOfItsOwn(t *testing.T) {
	f := newAddOnFan(t, "signed", 1)
	ca := f.authority(t, "signed")
	f.template(
		t, "one",
		`{"type":"CustomSigner","customSigner":{"signerName":"example.com/signed","signingCA":{"name":"signed"},"subject":{"user":"me","groups":["g"]}}}`,
	)
	f.offerTemplate(t, `{"type":"Manual"}`)
	f.addon(t, "signed-0", "signed")
	a := f.awaitSaid(t, "signed-0", addonv1alpha1.ConditionRegistrationApplied, addonv1alpha1.ReasonSetPermissionApplied, "")
	name := f.requestCertificate(t, a, "signed-0")
	soon(t, func() bool { return len(f.events(t, "signed-0", "CertificateRequestWaits")) == 1 }, "what the hub lacks is reported")
	f.letSign(t, "signed")

	var raw []byte
	soon(t, func() bool {
		csr, err := f.kube.CertificatesV1().CertificateSigningRequests().Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err)
		raw = csr.Status.Certificate
		return len(raw) > 0
	}, "%v", &raw)
	block, _ := pem.Decode(raw)
	certificate, err := x509.ParseCertificate(block.Bytes)
	require.NoError(t, err)
	require.NoError(t, certificate.CheckSignatureFrom(ca))
	require.Equal(t, "me", certificate.Subject.CommonName)
	require.LessOrEqual(t, time.Until(certificate.NotAfter), 24*time.Hour)
}
