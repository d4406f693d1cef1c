// SPDX-License-Identifier: Apache-2.0

package addonkit_test

import (
	"context"
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
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit/registration"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness/addontest"
)

// guest runs on a hosting cluster and signs its certificates itself.
type guest struct {
	addonkit.HostedByAnnotation
	authority registration.Authority
	clock     clock.PassiveClock
}

func (guest) Options() addonkit.Options { return addonkit.Options{Name: "guest"} }

func (guest) Manifests(context.Context, addonkit.Instance) ([]runtime.Object, error) {
	return []runtime.Object{&corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "guest", Annotations: map[string]string{
			addonv1alpha1.AnnotationHostedManifestLocation: addonv1alpha1.HostedManifestLocationHosting,
		}},
	}}, nil
}

func (guest) Registrations(context.Context, addonkit.Instance) ([]addonv1alpha1.RegistrationConfig, error) {
	return []addonv1alpha1.RegistrationConfig{{SignerName: "example.com/guest", Subject: addonv1alpha1.Subject{User: "guest"}}}, nil
}

func (g guest) Approve(ctx context.Context, i addonkit.Instance, csr *certificatesv1.CertificateSigningRequest) error {
	wanted, err := g.Registrations(ctx, i)
	if err != nil {
		return err
	}
	return registration.Check(csr, i, wanted)
}

func (g guest) Sign(_ context.Context, _ addonkit.Instance, csr *certificatesv1.CertificateSigningRequest) ([]byte, error) {
	return g.authority.Sign(csr, 24*time.Hour, g.clock.Now())
}

// newAuthority returns a certificate authority and its certificate.
func newAuthority(t *testing.T, now time.Time) (registration.Authority, *x509.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "guests"}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(48 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	certificate, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	sec1, err := x509.MarshalECPrivateKey(key)
	require.NoError(t, err)
	a, err := registration.ReadAuthority(
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: sec1}),
	)
	require.NoError(t, err)
	return a, certificate
}

func TestAHostedAddOnWithASignerOfItsOwn(t *testing.T) {
	authority, ca := newAuthority(t, clock.RealClock{}.Now())
	h := addontest.New(t, guest{authority: authority, clock: clock.RealClock{}}, answering("example.com/guest", "approve", "sign")...)
	here := h.Install("c1", "h1")
	h.Await(here, addonv1alpha1.ConditionHostingClusterValidity, addonv1alpha1.ReasonHostingClusterInvalid)
	h.Join("h1")
	h.Await(here, addonv1alpha1.ConditionHostingClusterValidity, addonv1alpha1.ReasonHostingClusterValid)
	h.Report("h1", "addon-guest-deploy-hosting-c1-0", "")
	a := h.Await(here, addonv1alpha1.ConditionHostingManifestApplied, addonv1alpha1.ReasonManifestApplied)
	require.Equal(t, []string{addonv1alpha1.FinalizerHostingManifests}, a.Finalizers)

	block, _ := pem.Decode(h.Issued(h.Ask("c1", a)))
	certificate, err := x509.ParseCertificate(block.Bytes)
	require.NoError(t, err)
	require.NoError(t, certificate.CheckSignatureFrom(ca))
	require.Equal(t, "guest", certificate.Subject.CommonName)

	require.NoError(t, h.Admin.Resource(addontest.AddOns).Namespace("c1").Delete(t.Context(), "guest", metav1.DeleteOptions{}))
	h.Gone(addontest.Works, reconcile.Key{Namespace: "h1", Name: "addon-guest-deploy-hosting-c1-0"})
	h.Gone(addontest.AddOns, here)
}
