// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"crypto/x509"
	"encoding/pem"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	config "github.com/kubectl-ocm/kubectl-ocm/config/agent"
	"github.com/kubectl-ocm/kubectl-ocm/internal/kubeconfig"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
)

func TestJoinToAvailable(t *testing.T) {
	h, s := newHub(t), newSpoke(t)
	s.install(t, config.Options{ClusterName: "join", BootstrapKubeconfig: h.bootstrap(t), Spec: operatorv1.KlusterletSpec{
		ExternalServerURLs: []operatorv1.ServerURL{{URL: "https://spoke.example.com:6443"}},
		RegistrationConfiguration: &operatorv1.RegistrationConfiguration{
			ClusterAnnotations: map[string]string{"agent.open-cluster-management.io/team": "blue", "other/key": "dropped"},
			ClusterLabels:      map[string]string{"region": "north"},
		},
	}})
	started := time.Now()
	a := s.start(t)

	// The request is that of the contract, and the ManagedCluster exists before it.
	request := h.awaitRequest(t, "join")
	uid := string(s.klusterlet(t).UID)
	checkRequest(t, request, "join", uid)
	c := h.cluster(t.Context(), "join")
	require.NotNil(t, c)
	require.False(t, c.Spec.HubAcceptsClient)
	require.Equal(t, map[string]string{"agent.open-cluster-management.io/team": "blue"}, c.Annotations)
	require.Equal(t, "north", c.Labels["region"])
	require.Equal(t, []clusterv1.ClientConfig{{URL: "https://spoke.example.com:6443", CABundle: s.Config.CAData}}, c.Spec.ManagedClusterClientConfigs)

	// Name and key of the request are stored, and nothing else is requested.
	pending := s.secret(t.Context(), "hub-kubeconfig-pending")
	require.Equal(t, request.GetName(), string(pending["csr-name"]))
	s.awaitKlusterlet(t, "HubConnectionDegraded", "BootstrapSecretFunctional,HubKubeConfigSecretMissing", "waits for approval")
	require.Nil(t, s.secret(t.Context(), "hub-kubeconfig-secret"))
	asked := time.Since(started)

	approved := time.Now()
	h.accept(t, "join")
	h.approve(t, request.GetName())
	c = h.awaitCondition(t, "join", clusterv1.ConditionAvailable, metav1.ConditionTrue)
	t.Logf(
		"process started to certificate request and its checks %s; approved to available %s",
		asked.Round(time.Millisecond), time.Since(approved).Round(time.Millisecond),
	)
	require.True(t, apimeta.IsStatusConditionTrue(c.Status.Conditions, clusterv1.ConditionJoined))

	checkKept(t, h, s, "join", uid)
	s.awaitKlusterlet(t, "HubConnectionDegraded", "HubConnectionFunctional", "")
	s.awaitKlusterlet(t, "Applied", "KlusterletApplied", "")
	s.awaitKlusterlet(t, "SpecSupported", "AllFieldsSupported", "")
	await(t, func() bool { return s.secret(t.Context(), "hub-kubeconfig-pending") == nil })
	await(t, func() bool {
		c := h.cluster(t.Context(), "join")
		return c.Status.Version.Kubernetes == "v1.36.3" && apimeta.IsStatusConditionTrue(c.Status.Conditions, clusterv1.ConditionClusterCertificateRotated)
	})
	await(t, func() bool {
		u, err := h.client.Resource(leases).Namespace("join").Get(t.Context(), clusterv1.LeaseName, metav1.GetOptions{})
		require.NoError(t, err)
		_, renewed, _ := unstructured.NestedString(u.Object, "spec", "renewTime")
		return renewed
	})
	require.Len(t, h.requestsOf(t, "join"), 1)
	t.Logf("measured: %s", a.memory(t))
	require.Equal(t, 0, a.stop())
	u, err := s.client.Resource(leases).Namespace(operatorv1.NamespaceAgent).Get(t.Context(), "klusterlet-agent-lock", metav1.GetOptions{})
	require.NoError(t, err)
	holder, _, _ := unstructured.NestedString(u.Object, "spec", "holderIdentity")
	require.Empty(t, holder, "the lock is given back")
}

// checkRequest compares a request with what an agent sends.
func checkRequest(t *testing.T, u *unstructured.Unstructured, cluster, agent string) {
	t.Helper()
	require.Regexp(t, "^"+cluster+"-[a-z0-9]{5}$", u.GetName())
	require.Equal(t, map[string]string{clusterv1.LabelClusterName: cluster}, u.GetLabels())
	spec := u.Object["spec"].(map[string]any)
	require.Equal(t, "kubernetes.io/kube-apiserver-client", spec["signerName"])
	require.Equal(t, []any{"digital signature", "key encipherment", "client auth"}, spec["usages"])
	require.NotContains(t, spec, "expirationSeconds")
	csr := parsed(t, u)
	require.Equal(t, "system:open-cluster-management:"+cluster+":"+agent, csr.Subject.CommonName)
	require.ElementsMatch(t, []string{"system:open-cluster-management:" + cluster, "system:open-cluster-management:managed-clusters"}, csr.Subject.Organization)
	require.Equal(t, x509.ECDSA, csr.PublicKeyAlgorithm)
	require.Empty(t, csr.DNSNames)
}

// checkKept compares the hub secret with what an agent stores.
func checkKept(t *testing.T, h *hub, s *spoke, cluster, agent string) {
	t.Helper()
	kept := s.secret(t.Context(), "hub-kubeconfig-secret")
	require.Len(t, kept, 5)
	require.Equal(t, cluster, string(kept["cluster-name"]))
	require.Equal(t, agent, string(kept["agent-name"]))
	c, err := kubeconfig.ParseSecret(kept)
	require.NoError(t, err)
	require.Empty(t, c.Difference(h.endpoint("hub")))
	block, _ := pem.Decode(kept["tls.crt"])
	cert, err := x509.ParseCertificate(block.Bytes)
	require.NoError(t, err)
	require.Equal(t, "system:open-cluster-management:"+cluster+":"+agent, cert.Subject.CommonName)
}
