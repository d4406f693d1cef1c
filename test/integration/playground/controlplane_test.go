// SPDX-License-Identifier: Apache-2.0

package playground_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
	"github.com/kubectl-ocm/kubectl-ocm/test/playground"
)

func clientOf(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	return client
}

func TestAnApprovedRequestIsSignedForTheChosenTime(t *testing.T) {
	cluster := harness.ControlPlane(t, "hub", harness.SigningDuration(time.Hour))
	client := clientOf(t, cluster.Config).CertificatesV1().CertificateSigningRequests()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "someone"}}, key)
	require.NoError(t, err)
	request, err := client.Create(t.Context(), &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: "someone"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName: certificatesv1.KubeAPIServerClientSignerName,
			Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth},
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	request.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{
		{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Test"},
	}
	_, err = client.UpdateApproval(t.Context(), request.Name, request, metav1.UpdateOptions{})
	require.NoError(t, err)

	require.Eventually(t, func() bool {
		request, err = client.Get(t.Context(), request.Name, metav1.GetOptions{})
		return err == nil && len(request.Status.Certificate) > 0
	}, patience, 20*time.Millisecond)
	block, _ := pem.Decode(request.Status.Certificate)
	require.NotNil(t, block)
	certificate, err := x509.ParseCertificate(block.Bytes)
	require.NoError(t, err)
	require.Less(t, certificate.NotAfter.Sub(certificate.NotBefore), 66*time.Minute)
}

func TestTheAddressAndAuthorityOfAClusterCanBeReadByAnybody(t *testing.T) {
	cluster := harness.Shared(t, "hub")
	anonymous := clientOf(t, rest.AnonymousClientConfig(cluster.Config))
	info, err := anonymous.CoreV1().ConfigMaps(metav1.NamespacePublic).Get(t.Context(), "cluster-info", metav1.GetOptions{})
	require.NoError(t, err)
	require.Contains(t, info.Data["kubeconfig"], cluster.Config.Host)
	_, err = anonymous.CoreV1().ConfigMaps(metav1.NamespacePublic).Get(t.Context(), "kube-root-ca.crt", metav1.GetOptions{})
	require.Error(t, err)
}

func TestObjectsSurviveEveryRestart(t *testing.T) {
	cluster := harness.ControlPlane(t, "hub")
	client := clientOf(t, cluster.Config)
	_, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kept"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	for _, component := range []playground.Component{playground.Etcd, playground.APIServer, playground.ControllerManager} {
		require.NoError(t, cluster.Playground.Restart(t.Context(), component))
		require.Eventually(t, func() bool {
			_, err = client.CoreV1().Namespaces().Get(t.Context(), "kept", metav1.GetOptions{})
			return err == nil
		}, patience, 50*time.Millisecond, "after the restart of %s: %v", component, &err)
	}

	before := *cluster.Playground
	require.NoError(t, cluster.Playground.Stop())
	binaries, err := harness.Binaries(t.Context())
	require.NoError(t, err)
	again, err := playground.Start(t.Context(), playground.Config{Dir: before.Dir, Name: before.Name, Binaries: binaries})
	require.NoError(t, err)
	require.Equal(t, before.Server, again.Server)
	require.Equal(t, before.CA, again.CA)
	// The client still has a connection to the previous server.
	require.Eventually(t, func() bool {
		_, err = client.CoreV1().Namespaces().Get(t.Context(), "kept", metav1.GetOptions{})
		return err == nil
	}, patience, 50*time.Millisecond, "%v", &err)
	require.NoError(t, again.Stop())
}

func TestAKilledServerIsGoneAtOnceAndAPausedOneHangs(t *testing.T) {
	cluster := harness.ControlPlane(t, "hub")
	client := clientOf(t, cluster.Config)
	require.NoError(t, cluster.Playground.Pause(playground.APIServer))
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, cluster.Playground.Resume(playground.APIServer))
	_, err = client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)

	require.NoError(t, cluster.Playground.Kill(playground.APIServer))
	// The first request may use the connection that was open.
	require.Eventually(t, func() bool {
		_, err = client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
		return err != nil && strings.Contains(err.Error(), "connection refused")
	}, patience, 20*time.Millisecond, "%v", &err)
}

func TestACutClusterAnswersNothingUntilItIsHealed(t *testing.T) {
	cluster := harness.Shared(t, "hub")
	gate := cluster.Gate(t)
	client := clientOf(t, gate.Through(cluster.Config))
	list := func(limit time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		_, err := client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
		return err
	}
	require.NoError(t, list(patience))
	gate.Cut()
	require.ErrorIs(t, list(300*time.Millisecond), context.DeadlineExceeded)
	_, err := clientOf(t, cluster.Config).CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err, "only the way through the gate is cut")
	gate.Heal()
	require.Eventually(t, func() bool { return list(10*time.Second) == nil }, patience, 10*time.Millisecond)
}

// A program that ends immediately is reported immediately, with the end of its log.
func TestAProgramThatDiesIsNamedWithItsLog(t *testing.T) {
	binaries, err := harness.Binaries(t.Context())
	require.NoError(t, err)
	dir := filepath.Join(t.TempDir(), "hub")
	require.NoError(t, os.MkdirAll(dir, 0o700))
	binaries.Etcd = filepath.Join(dir, "broken")
	require.NoError(t, os.WriteFile(binaries.Etcd, []byte("#!/bin/sh\necho no space left on the moon\nexit 7\n"), 0o700))
	_, err = playground.Start(t.Context(), playground.Config{Dir: dir, Name: "hub", Binaries: binaries})
	require.ErrorContains(t, err, "no space left on the moon")
	require.ErrorContains(t, err, "exit status 7")
}
