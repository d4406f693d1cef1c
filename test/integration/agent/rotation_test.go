// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	config "github.com/kubectl-ocm/kubectl-ocm/config/agent"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

func TestCertificateIsRenewedWithoutARestart(t *testing.T) {
	t.Parallel()
	h, s := newHub(t), newSpoke(t)
	s.install(t, config.Options{ClusterName: "rotate", BootstrapKubeconfig: h.bootstrap(t)})
	a := s.start(t)
	h.join(t, "rotate")
	first := h.requestsOf(t, "rotate")[0].GetName()
	kept := s.secret(t.Context(), "hub-kubeconfig-secret")
	uid := string(s.klusterlet(t).UID)
	pid := a.cmd.Process.Pid

	// Certificates of the test hub are backdated by five minutes and valid for
	// 150 s, so 75 to 80 % of their life have passed after 38 to 60 s.
	var renewal *unstructured.Unstructured
	require.Eventually(t, func() bool {
		for _, u := range h.requestsOf(t, "rotate") {
			if u.GetName() != first {
				renewal = u
			}
		}
		return renewal != nil
	}, 2*time.Minute, 100*time.Millisecond)
	user, _, _ := unstructured.NestedString(renewal.Object, "spec", "username")
	require.Equal(t, "system:open-cluster-management:rotate:"+uid, user, "a renewal is asked for under the own identity")
	age := renewal.GetCreationTimestamp().Unix() - h.requestTime(t, first)
	require.GreaterOrEqual(t, age, int64(35))
	require.LessOrEqual(t, age, int64(65))

	h.approve(t, renewal.GetName())
	require.Eventually(t, func() bool {
		now := s.secret(t.Context(), "hub-kubeconfig-secret")
		return !bytes.Equal(now["tls.crt"], kept["tls.crt"]) && !bytes.Equal(now["tls.key"], kept["tls.key"])
	}, wait, 20*time.Millisecond)
	c := h.awaitCondition(t, "rotate", clusterv1.ConditionClusterCertificateRotated, metav1.ConditionTrue)
	require.Equal(t, "ClientCertificateUpdated", apimeta.FindStatusCondition(c.Status.Conditions, clusterv1.ConditionClusterCertificateRotated).Reason)

	// The agent goes on under the new certificate, in the same process.
	h.condition(t, "rotate", clusterv1.ConditionAvailable, metav1.ConditionUnknown, clusterv1.ReasonManagedClusterLeaseUpdateStopped)
	h.awaitCondition(t, "rotate", clusterv1.ConditionAvailable, metav1.ConditionTrue)
	require.True(t, a.running())
	require.Equal(t, pid, a.cmd.Process.Pid)
}
