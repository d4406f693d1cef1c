// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	config "github.com/kubectl-ocm/kubectl-ocm/config/agent"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

// certificate returns the first certificate of a PEM text.
func certificate(t *testing.T, text []byte) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode(text)
	require.NotNil(t, block)
	cert, err := x509.ParseCertificate(block.Bytes)
	require.NoError(t, err)
	return cert
}

// checkRenewalTime makes sure that the successor of a certificate was requested after
// three quarters of its lifetime and before its end. The tests of
// controllers/registration/agent/credential check that it is not long after the three
// quarters; here, a slow machine may take its time.
func checkRenewalTime(t *testing.T, renewal *unstructured.Unstructured, before []byte) {
	t.Helper()
	cert, at := certificate(t, before), renewal.GetCreationTimestamp()
	due := cert.NotBefore.Add(cert.NotAfter.Sub(cert.NotBefore) * 3 / 4)
	require.False(t, at.Before(&metav1.Time{Time: due.Truncate(time.Second)}), "asked for at %s, due at %s", at, due)
	require.True(t, at.Time.Before(cert.NotAfter), "asked for at %s, expired at %s", at, cert.NotAfter)
}

func TestCertificateIsRenewedWithoutARestart(t *testing.T) {
	t.Parallel()
	h, s := newBriefHub(t), newSpoke(t)
	s.install(t, config.Options{ClusterName: "rotate", BootstrapKubeconfig: h.bootstrap(t)})
	a := s.start(t)
	h.join(t, "rotate")
	first := h.requestsOf(t, "rotate")[0].GetName()
	kept := s.secret(t.Context(), "hub-kubeconfig-secret")
	uid := string(s.klusterlet(t).UID)
	pid := a.cmd.Process.Pid

	renewal := h.awaitRequest(t, "rotate", first)
	user, _, _ := unstructured.NestedString(renewal.Object, "spec", "username")
	require.Equal(t, "system:open-cluster-management:rotate:"+uid, user, "a renewal is asked for under the own identity")
	checkRenewalTime(t, renewal, kept["tls.crt"])

	h.approve(t, renewal.GetName())
	await(t, func() bool {
		now := s.secret(t.Context(), "hub-kubeconfig-secret")
		return now != nil && !bytes.Equal(now["tls.crt"], kept["tls.crt"]) && !bytes.Equal(now["tls.key"], kept["tls.key"])
	})
	c := h.awaitCondition(t, "rotate", clusterv1.ConditionClusterCertificateRotated, metav1.ConditionTrue)
	require.Equal(t, "ClientCertificateUpdated", apimeta.FindStatusCondition(c.Status.Conditions, clusterv1.ConditionClusterCertificateRotated).Reason)

	// The agent continues with the new certificate, in the same process.
	h.condition(t, "rotate", clusterv1.ConditionAvailable, metav1.ConditionUnknown, clusterv1.ReasonManagedClusterLeaseUpdateStopped)
	h.awaitCondition(t, "rotate", clusterv1.ConditionAvailable, metav1.ConditionTrue)
	require.True(t, a.running())
	require.Equal(t, pid, a.cmd.Process.Pid)
}

// TestRestartedAgentRenewsItsCertificate checks that a process that did not request the
// certificate itself renews it as well, under the same names.
func TestRestartedAgentRenewsItsCertificate(t *testing.T) {
	t.Parallel()
	h, s := newBriefHub(t), newSpoke(t)
	s.install(t, config.Options{ClusterName: "rotate-again", BootstrapKubeconfig: h.bootstrap(t)})
	a := s.start(t)
	h.join(t, "rotate-again")
	first := h.requestsOf(t, "rotate-again")[0].GetName()
	kept := s.secret(t.Context(), "hub-kubeconfig-secret")
	a.kill()
	s.start(t)
	renewal := h.awaitRequest(t, "rotate-again", first)
	user, _, _ := unstructured.NestedString(renewal.Object, "spec", "username")
	require.Equal(t, "system:open-cluster-management:rotate-again:"+string(s.klusterlet(t).UID), user)
	checkRenewalTime(t, renewal, kept["tls.crt"]) // not for the restart
	h.approve(t, renewal.GetName())
	await(t, func() bool {
		now := s.secret(t.Context(), "hub-kubeconfig-secret")
		return now != nil && !bytes.Equal(now["tls.crt"], kept["tls.crt"])
	})
	await(t, func() bool { return s.secret(t.Context(), "hub-kubeconfig-pending") == nil })
	require.Len(t, h.requestsOf(t, "rotate-again"), 2)
}
