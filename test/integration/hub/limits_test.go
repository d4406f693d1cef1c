// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"context"
	"crypto/tls"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// testLimits changes the ConfigMap that limits connections while the process runs.
func (s *scene) testLimits(t *testing.T) {
	ctx, pid := t.Context(), hubPID(t, s)
	dial := func(port int, version uint16) error {
		d := &tls.Dialer{Config: &tls.Config{MaxVersion: version, InsecureSkipVerify: true, ServerName: hub.WorkService + "." + hub.Namespace + ".svc"}}
		conn, err := d.DialContext(ctx, "tcp", s.portOf(t, port))
		if err == nil {
			err = conn.Close()
		}
		return err
	}
	accepts := func(want bool) {
		t.Helper()
		for _, port := range []int{8443, 9443} {
			var err error
			soon(t, func() bool {
				err = dial(port, tls.VersionTLS12)
				return (err == nil) == want
			}, "TLS 1.2 on port %d: %v", port, &err)
			require.NoError(t, dial(port, tls.VersionTLS13), port)
		}
	}
	applied := func(want metav1.ConditionStatus, message string) {
		t.Helper()
		var have metav1.Condition
		soon(t, func() bool {
			cm, err := typed.Get[operatorv1.ClusterManager](ctx, s.dyn, managers, "", hub.Name)
			require.NoError(t, err)
			have = *apimeta.FindStatusCondition(cm.Status.Conditions, operatorv1.ConditionApplied)
			return have.Status == want && strings.Contains(have.Message, message)
		}, "Applied %s %s: %v", want, message, &have)
	}
	maps := s.kube.CoreV1().ConfigMaps(hub.Namespace)
	accepts(true)
	profile, err := maps.Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "ocm-tls-profile"}, Data: map[string]string{"minTLSVersion": "TLSv1.3"},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	accepts(false)
	applied(metav1.ConditionTrue, "")

	// What cannot be read changes nothing, and is named.
	profile.Data = map[string]string{"minTLSVersion": "VersionTLS12", "cipherSuites": "TLS_AES_128_GCM_SHA256, TLS_RSA_WITH_RC4_128_SHA"}
	_, err = maps.Update(ctx, profile, metav1.UpdateOptions{})
	require.NoError(t, err)
	applied(metav1.ConditionFalse, `ConfigMap open-cluster-management/ocm-tls-profile is not in effect: cipher suite "TLS_RSA_WITH_RC4_128_SHA"`)
	accepts(false)

	require.NoError(t, maps.Delete(context.Background(), profile.Name, metav1.DeleteOptions{}))
	applied(metav1.ConditionTrue, "")
	accepts(true)
	require.Equal(t, pid, hubPID(t, s), "the process was not restarted")
}

// policies returns the names of the NetworkPolicies beside the process.
func (s *scene) policies(t *testing.T) []string {
	t.Helper()
	list, err := s.kube.NetworkingV1().NetworkPolicies(hub.Namespace).List(context.Background(), metav1.ListOptions{})
	require.NoError(t, err)
	var out []string
	for i := range list.Items {
		out = append(out, list.Items[i].Name)
	}
	return out
}

// testPolicy leaves the gate on, so that the removal has something to remove.
func (s *scene) testPolicy(t *testing.T) {
	ctx := context.Background()
	gate := func(mode string, want ...string) {
		t.Helper()
		s.manage(t, `{"spec":{"registrationConfiguration":{"featureGates":[{"feature":"NetworkPolicies","mode":"`+mode+`"}]}}}`)
		soon(t, func() bool { return slices.Equal(s.policies(t), want) }, "%s: %v", mode, want)
	}
	related := func() bool {
		cm, err := typed.Get[operatorv1.ClusterManager](ctx, s.dyn, managers, "", hub.Name)
		require.NoError(t, err)
		return apimeta.IsStatusConditionTrue(cm.Status.Conditions, operatorv1.ConditionValidFeatureGates) &&
			slices.ContainsFunc(cm.Status.RelatedResources, func(r operatorv1.RelatedResourceMeta) bool { return r.Name == hub.ProcessPolicy })
	}
	api := s.kube.NetworkingV1().NetworkPolicies(hub.Namespace)
	gate("Enable", hub.Name, hub.ProcessPolicy)
	soon(t, related, "it is a related resource, and the gate is valid")
	_, err := api.Patch(ctx, hub.ProcessPolicy, types.MergePatchType, []byte(`{"spec":{"egress":[{}]}}`), metav1.PatchOptions{FieldManager: "stranger"})
	require.NoError(t, err)
	soon(t, func() bool {
		live, err := api.Get(ctx, hub.ProcessPolicy, metav1.GetOptions{})
		require.NoError(t, err)
		return len(live.Spec.Egress) == 2 && len(live.Spec.Egress[0].Ports) == 6 && len(live.Spec.Egress[1].To) == 1
	}, "it is put back")
	gate("Disable", hub.Name)
	soon(t, func() bool { return !related() }, "it is no related resource any more")
	gate("Enable", hub.Name, hub.ProcessPolicy)
}
