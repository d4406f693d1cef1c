// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/token"
)

// TestTheHubLogsNoTokenAndNoKey runs the hub with verbose logs while clusters join with
// good and bad tokens, and searches the log for secrets (CVE-2020-8565).
func TestTheHubLogsNoTokenAndNoKey(t *testing.T) {
	t.Parallel()
	s := ownHub(t)
	s.arguments(t, "run", "-v", "9")
	c, err := fleet.Connect(s.Config, "hub")
	require.NoError(t, err)
	own, err := token.Create(t.Context(), token.Options{Hub: c, Cluster: "quiet"})
	require.NoError(t, err)
	boot, err := token.Create(t.Context(), token.Options{Hub: c, Cluster: "quiet", Bootstrap: true})
	require.NoError(t, err)
	for _, text := range []string{own.Token, boot.Token} {
		config := rest.AnonymousClientConfig(s.Config)
		config.BearerToken, config.QPS = text, -1
		dyn, kube := clients(t, config)
		require.Error(t, create(dyn, cluster("loud")))
		stolen, _ := agentRequest(t, kube, "loud", "a")
		require.Equal(t, clusterv1.ReasonTokenForAnotherCluster, s.denial(t, stolen.Name).Reason)
	}
	s.register(t, "quiet", "a")
	s.accept(t, "quiet", false)
	s.await(t, "quiet", "is denied", conditionIs(clusterv1.ConditionHubAccepted, metav1.ConditionFalse, clusterv1.ReasonHubClusterAdminDenied))

	var text strings.Builder
	pods, err := s.kube.CoreV1().Pods(hub.Namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for _, pod := range pods.Items {
		raw, err := s.kube.CoreV1().Pods(hub.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(t.Context())
		require.NoError(t, err)
		text.Write(raw)
	}
	log := text.String()
	require.Contains(t, log, "Controllers start")
	_, secret, _ := strings.Cut(boot.Token, ".")
	said := map[string]string{
		"a join token":                    own.Token,
		"its signature":                   own.Token[strings.LastIndex(own.Token, ".")+1:],
		"the secret of a bootstrap token": secret,
		"a key":                           "PRIVATE KEY",
		"a credential":                    "Bearer ",
	}
	kept, err := s.kube.CoreV1().Secrets("").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for _, o := range kept.Items {
		if key := strings.Split(string(o.Data[corev1.TLSPrivateKeyKey]), "\n"); len(key) > 2 {
			said["a line of the key in "+o.Namespace+"/"+o.Name] = key[1]
		}
	}
	require.Greater(t, len(said), 5, "the hub keeps keys")
	for what, secret := range said {
		require.NotEmpty(t, secret, what)
		require.NotContains(t, log, secret, what)
	}
}
