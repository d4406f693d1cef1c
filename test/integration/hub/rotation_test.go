// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
)

// testRotation gives the authority and the serving certificates a short life. What calls the hub
// trusts all the time what it is shown, and gets the new authority.
func (s *scene) testRotation(t *testing.T) {
	s.arguments(t, "run", "--signer-duration=40s", "--serving-cert-duration=25s")
	ctx, dns := t.Context(), hub.RegistrationService+"."+hub.Namespace+".svc"
	secrets, address := s.kube.CoreV1().Secrets(hub.ComponentNamespace), ""
	stored := func(name string) string {
		secret, err := secrets.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return ""
		}
		return string(secret.Data[corev1.TLSCertKey])
	}
	leaves := []string{
		operatorv1.SecretRegistrationWebhookServingCert, operatorv1.SecretWorkWebhookServingCert, operatorv1.SecretAddOnWebhookServingCert,
	}
	hook := func() string {
		live, err := s.kube.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(ctx,
			"managedclustermutators.admission.cluster.open-cluster-management.io", metav1.GetOptions{})
		require.NoError(t, err)
		return string(live.Webhooks[0].ClientConfig.CABundle)
	}
	trusts := func(bundle string) error {
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM([]byte(bundle))
		conn, err := (&tls.Dialer{Config: &tls.Config{RootCAs: pool, ServerName: dns}}).DialContext(ctx, "tcp", address)
		if err == nil {
			err = conn.Close()
		}
		return err
	}
	// What was issued for longer goes; a process that runs would put it back.
	s.scale(t, 0)
	before := map[string]string{}
	for _, name := range append(leaves, operatorv1.SecretSigner) {
		before[name] = stored(name)
		require.NoError(t, secrets.Delete(ctx, name, metav1.DeleteOptions{}))
	}
	s.scale(t, 1)
	address = s.portOf(t, 9443)
	soon(t, func() bool {
		signer := stored(operatorv1.SecretSigner)
		return signer != "" && signer != before[operatorv1.SecretSigner] && strings.HasPrefix(hook(), signer) && trusts(signer) == nil
	}, "a signer for a short life")
	for name := range before {
		before[name] = stored(name)
	}
	// The authority changes first, and then one certificate after the other.
	renewed := func() bool {
		for name, old := range before {
			if now := stored(name); now == "" || now == old {
				return false
			}
		}
		return true
	}
	var err error
	soon(t, func() bool {
		if err = trusts(hook()); err != nil {
			return true
		}
		return renewed() && trusts(stored(operatorv1.SecretSigner)) == nil
	}, "not everything is renewed")
	require.NoError(t, err, "what the API server trusts does not verify what it is shown")
	require.True(t, strings.HasPrefix(hook(), stored(operatorv1.SecretSigner)), "the newest authority comes first")
	require.Contains(t, hook(), before[operatorv1.SecretSigner])
	soon(t, func() bool {
		definition, err := s.dyn.Resource(definitions).Get(ctx, "managedclusteraddons.addon.open-cluster-management.io", metav1.GetOptions{})
		require.NoError(t, err)
		converts, _, _ := unstructured.NestedString(definition.Object, "spec", "conversion", "webhook", "clientConfig", "caBundle")
		return converts == base64.StdEncoding.EncodeToString([]byte(hook()))
	}, "conversion trusts the same")
	s.awaitHub(t)
}
