// SPDX-License-Identifier: Apache-2.0

package addontest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"

	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

var requests = certificatesv1.SchemeGroupVersion.WithResource("certificatesigningrequests")

// Report marks a work as applied and available, as the agent of its cluster does.
// manifests is the JSON of status.resourceStatus.manifests, without brackets.
func (h *Hub) Report(cluster, work, manifests string) {
	h.t.Helper()
	body := fmt.Appendf(nil, `{"status":{"conditions":[
		{"type":"Applied","status":"True","reason":"R","message":"m","lastTransitionTime":"2030-01-01T00:00:00Z"},
		{"type":"Available","status":"True","reason":"R","message":"m","lastTransitionTime":"2030-01-01T00:00:00Z"}],
		"resourceStatus":{"manifests":[%s]}}}`, manifests)
	h.Soon("reporting "+work, func() error {
		_, err := h.Admin.Resource(Works).Namespace(cluster).Patch(h.t.Context(), work, types.MergePatchType, body, metav1.PatchOptions{}, "status")
		return err
	})
}

// Ask requests the certificate of the first registration of an instance, as the agent of
// a cluster, which may differ from that of the instance. It returns the name of the
// request.
func (h *Hub) Ask(cluster string, a *addonv1alpha1.ManagedClusterAddOn) string {
	h.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(h.t, err)
	wanted := a.Status.Registrations[0]
	subject := pkix.Name{CommonName: wanted.Subject.User, Organization: wanted.Subject.Groups}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: subject}, key)
	require.NoError(h.t, err)
	config := rest.CopyConfig(h.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: clusterv1.UserPrefix + cluster + ":agent", Groups: []string{"system:masters"}}
	agent, err := dynamic.NewForConfig(config)
	require.NoError(h.t, err)
	csr := &certificatesv1.CertificateSigningRequest{
		TypeMeta: metav1.TypeMeta{APIVersion: certificatesv1.SchemeGroupVersion.String(), Kind: "CertificateSigningRequest"},
		ObjectMeta: metav1.ObjectMeta{
			Name:   "addon-" + cluster + "-" + a.Name,
			Labels: map[string]string{clusterv1.LabelClusterName: a.Namespace, addonv1alpha1.LabelAddOnName: a.Name},
		},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), SignerName: wanted.SignerName,
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageClientAuth},
		},
	}
	u, err := typed.ToUnstructured(csr)
	require.NoError(h.t, err)
	_, err = agent.Resource(requests).Create(h.t.Context(), u, metav1.CreateOptions{})
	require.NoError(h.t, err)
	return csr.Name
}

// Issued waits for the certificate of a request, in PEM.
func (h *Hub) Issued(name string) []byte {
	h.t.Helper()
	var out []byte
	h.Soon("certificate", func() error {
		csr := h.Request(name)
		if out = csr.Status.Certificate; len(out) == 0 {
			return fmt.Errorf("no certificate: %+v", csr.Status)
		}
		return nil
	})
	return out
}

// Request returns the current state of a certificate request.
func (h *Hub) Request(name string) *certificatesv1.CertificateSigningRequest {
	h.t.Helper()
	csr, err := typed.Get[certificatesv1.CertificateSigningRequest](h.t.Context(), h.Admin, requests, "", name)
	require.NoError(h.t, err)
	return csr
}
