// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	confighub "github.com/kubectl-ocm/kubectl-ocm/config/hub"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	connectv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/connect/v1alpha1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
	"github.com/kubectl-ocm/kubectl-ocm/test/playground/pki"
)

var (
	managers    = operatorv1.GroupVersion.WithResource("clustermanagers")
	apiServices = reconcile.ResourceOf(decodeKind("apiregistration.k8s.io/v1", "APIService"))
)

// TestTheGateServesTheAPIAndTakesItAway: with the process of the hub, as installed.
func TestTheGateServesTheAPIAndTakesItAway(t *testing.T) {
	spoke := start(t)
	s := &scene{spoke: spoke.spoke, asAgent: spoke.asAgent}
	s.hub = harness.WithNode(t, "gated", map[string]string{"ocm-hub": harness.Program(t, "controllers/ocm-hub")})
	s.dyn = s.hub.Dynamic(t)
	var err error
	s.authority, err = pki.Open(filepath.Join(s.hub.Playground.Dir, "pki"), "kubernetes-ca-gated", time.Now())
	require.NoError(t, err)
	objects, err := confighub.Objects(confighub.Options{Image: "ghcr.io/kubectl-ocm/ocm-hub:v0.0.0-test", Version: "v0.0.0-test"})
	require.NoError(t, err)
	for _, u := range objects {
		apply(t, s.dyn, u)
	}
	s.awaitComplete(t)
	defer s.logHub(t)
	_, err = s.dyn.Resource(apiServices).Get(t.Context(), connectv1alpha1.APIService, metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "the gate is off: %v", err)

	give := s.takeAuthority(t)
	s.gate(t, "Enable")
	s.awaitSupported(t, "ClusterProxy (the hub's API server has no authority for aggregated APIs")
	_, err = s.dyn.Resource(apiServices).Get(t.Context(), connectv1alpha1.APIService, metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "nobody could be answered: %v", err)
	give()
	s.awaitSupported(t, "")
	admin := s.person(t, "kubernetes-admin", "system:masters")
	soon(t, func() error {
		_, err := admin.Discovery().ServerResourcesForGroupVersion(connectv1alpha1.GroupVersion.String())
		return err
	})
	soon(t, func() error { // admission may not answer yet
		_, err := s.dyn.Resource(clusters).Create(t.Context(), decode(t, `{"apiVersion":"cluster.open-cluster-management.io/v1","kind":"ManagedCluster",
			"metadata":{"name":"c1"},"spec":{"hubAcceptsClient":true}}`), metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	})
	stop := s.run(t, "c1", s.asAgent)
	s.awaitReason(t, "c1", metav1.ConditionTrue, connectv1alpha1.ReasonTunnelConnected)
	grant(t, s.spoke.Dynamic(t), "gated", "view", "User", "kubernetes-admin")
	through, err := kubernetes.NewForConfig(through(s.personConfig(t, "kubernetes-admin", "system:masters"), "c1"))
	require.NoError(t, err)
	soon(t, func() error {
		_, err := through.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
		return err
	})
	_, err = through.CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{})
	require.True(t, apierrors.IsForbidden(err), "an administrator of the hub is not one there: %v", err)
	s.testReplicas(t)

	stop()
	s.awaitReason(t, "c1", metav1.ConditionFalse, connectv1alpha1.ReasonTunnelDisconnected)
	_, err = through.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
	requireCause(t, err, http.StatusServiceUnavailable, connectv1alpha1.CauseNoTunnel)

	s.gate(t, "Disable")
	soon(t, func() error {
		if _, err := s.dyn.Resource(apiServices).Get(t.Context(), connectv1alpha1.APIService, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the APIService: %w", errors.Join(err, errStays))
		}
		if c := s.condition(t, "c1"); c != nil {
			return fmt.Errorf("the condition: %w", errStays)
		}
		_, err := s.hubSecrets(t).Get(t.Context(), operatorv1.SecretProxyServingCert, metav1.GetOptions{})
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("the certificate: %w", errors.Join(err, errStays))
		}
		return nil
	})
	s.testLeftBehind(t)
}

// testReplicas: with two processes of the hub every request is answered, whichever of them the API server
// asks, and again soon after the lead has moved to the other one, or the leader has died.
func (s *scene) testReplicas(t *testing.T) {
	t.Helper()
	kube := s.person(t, "kubernetes-admin", "system:masters")
	_, err := kube.AppsV1().Deployments(confighub.Namespace).Patch(t.Context(), confighub.Name, types.MergePatchType,
		[]byte(`{"spec":{"replicas":2}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	s.awaitBehind(t, kube, 2)
	s.awaitAllAnswered(t)
	s.awaitSupported(t, "")

	leader, _, _ := strings.Cut(s.holder(t, kube), "_")
	pods, err := kube.CoreV1().Pods(confighub.Namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "app=" + confighub.Name})
	require.NoError(t, err)
	require.Len(t, pods.Items, 2)
	other := pods.Items[0].Name
	if other == leader {
		other = pods.Items[1].Name
	}
	// A process takes a lease that is held in the name of its own pod, and the leader notices.
	before := other + "_before"
	_, err = kube.CoordinationV1().Leases(confighub.Namespace).Patch(t.Context(), "clustermanager-lock", types.MergePatchType,
		fmt.Appendf(nil, `{"spec":{"holderIdentity":%q}}`, before), metav1.PatchOptions{})
	require.NoError(t, err)
	soon(t, func() error {
		if is := s.holder(t, kube); is == before || !strings.HasPrefix(is, other+"_") {
			return fmt.Errorf("%s leads", is)
		}
		return nil
	})
	s.awaitAllAnswered(t)

	require.NoError(t, kube.CoreV1().Pods(confighub.Namespace).Delete(t.Context(), other, *metav1.NewDeleteOptions(0)))
	soon(t, func() error { // until another leads, the former leader may answer with the tunnel that it still has
		if is := s.holder(t, kube); strings.HasPrefix(is, other+"_") {
			return fmt.Errorf("%s leads", is)
		}
		return nil
	})
	s.awaitAllAnswered(t)
	s.awaitBehind(t, kube, 2)
	s.awaitReason(t, "c1", metav1.ConditionTrue, connectv1alpha1.ReasonTunnelConnected)
}

// holder returns which process of the hub leads: POD_PROCESS.
func (s *scene) holder(t *testing.T, kube kubernetes.Interface) string {
	t.Helper()
	lease, err := kube.CoordinationV1().Leases(confighub.Namespace).Get(t.Context(), "clustermanager-lock", metav1.GetOptions{})
	require.NoError(t, err)
	return *lease.Spec.HolderIdentity
}

// awaitAllAnswered waits until the cluster answers twenty requests in a row, of which none is repeated:
// each process of the hub is asked one time of two.
func (s *scene) awaitAllAnswered(t *testing.T) {
	t.Helper()
	config := s.personConfig(t, "kubernetes-admin", "system:masters")
	soon(t, func() error {
		for n := range 20 {
			answer := raw(t, config, http.MethodGet, connectv1alpha1.ServerPath("c1")+"/api/v1/namespaces/default/configmaps", nil)
			if answer.StatusCode != http.StatusOK {
				return fmt.Errorf("request %d: %s, %s", n+1, answer.Status, answer.Header.Get(connectv1alpha1.HeaderError))
			}
		}
		return nil
	})
}

// awaitBehind waits until so many processes are behind the Service of the API.
func (s *scene) awaitBehind(t *testing.T, kube kubernetes.Interface, want int) {
	t.Helper()
	soon(t, func() error {
		slices, err := kube.DiscoveryV1().EndpointSlices(confighub.Namespace).List(t.Context(), metav1.ListOptions{
			LabelSelector: discoveryv1.LabelServiceName + "=" + confighub.ProxyService,
		})
		if err != nil {
			return err
		}
		ready := 0
		for _, slice := range slices.Items {
			for _, e := range slice.Endpoints {
				if e.Conditions.Ready != nil && *e.Conditions.Ready {
					ready++
				}
			}
		}
		if ready != want {
			return fmt.Errorf("%d processes are behind the Service", ready)
		}
		return nil
	})
}

// testLeftBehind: a process that ended while the gate went off left a condition, which the next one
// removes.
func (s *scene) testLeftBehind(t *testing.T) {
	t.Helper()
	_, err := s.dyn.Resource(clusters).Patch(t.Context(), "c1", types.JSONPatchType, []byte(`[{"op":"add","path":"/status/conditions/-","value":
		{"type":"TunnelConnected","status":"True","reason":"TunnelConnected","message":"","lastTransitionTime":"2026-11-01T00:00:00Z"}}]`),
		metav1.PatchOptions{}, "status")
	require.NoError(t, err)
	pods := s.person(t, "kubernetes-admin", "system:masters").CoreV1().Pods(confighub.Namespace)
	require.NoError(t, pods.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	soon(t, func() error {
		if s.condition(t, "c1") != nil {
			return errStays
		}
		return nil
	})
}

// takeAuthority makes the API server look like one without an authority for aggregated APIs, until
// the returned function is called.
func (s *scene) takeAuthority(t *testing.T) (give func()) {
	t.Helper()
	ctx := context.Background()
	admin := s.person(t, "kubernetes-admin", "system:masters")
	rules := admin.AdmissionregistrationV1()
	rule := admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}}
	_, err := rules.ValidatingAdmissionPolicies().Create(ctx, &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "no-authority"},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update}, Rule: rule,
				},
			}}},
			Validations: []admissionregistrationv1.Validation{{
				Expression: "object.metadata.name != '" + authority + "' || !('requestheader-client-ca-file' in object.data)",
			}},
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = rules.ValidatingAdmissionPolicyBindings().Create(ctx, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "no-authority"},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: "no-authority", ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	maps := admin.CoreV1().ConfigMaps("kube-system")
	was, err := maps.Get(ctx, authority, metav1.GetOptions{})
	require.NoError(t, err)
	soon(t, func() error { // the policy is in effect, so the API server cannot put it back
		if _, err := maps.Update(ctx, was, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}}); err == nil {
			return errStays
		}
		return nil
	})
	_, err = maps.Patch(ctx, authority, types.MergePatchType, []byte(`{"data":{"requestheader-client-ca-file":null}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	return func() {
		require.NoError(t, rules.ValidatingAdmissionPolicyBindings().Delete(ctx, "no-authority", metav1.DeleteOptions{}))
		require.NoError(t, rules.ValidatingAdmissionPolicies().Delete(ctx, "no-authority", metav1.DeleteOptions{}))
		body, err := json.Marshal(map[string]any{"data": was.Data})
		require.NoError(t, err)
		soon(t, func() error {
			_, err := maps.Patch(ctx, authority, types.MergePatchType, body, metav1.PatchOptions{})
			return err
		})
	}
}

// authority is the ConfigMap in which an API server says how it presents itself.
const authority = "extension-apiserver-authentication"

// awaitSupported waits until the hub says what it leaves out; an empty text is nothing.
func (s *scene) awaitSupported(t *testing.T, text string) {
	t.Helper()
	soon(t, func() error {
		cm, err := typed.Get[operatorv1.ClusterManager](t.Context(), s.dyn, managers, "", confighub.Name)
		require.NoError(t, err)
		c := apimeta.FindStatusCondition(cm.Status.Conditions, operatorv1.ConditionSpecSupported)
		if text == "" && c == nil || text != "" && c != nil && strings.Contains(c.Message, text) {
			return nil
		}
		return fmt.Errorf("the condition is %+v", c)
	})
}

var errStays = errors.New("it is still there")

// gate switches the gate of the hub.
func (s *scene) gate(t *testing.T, mode string) {
	t.Helper()
	body := `{"spec":{"registrationConfiguration":{"featureGates":[{"feature":"ClusterProxy","mode":"` + mode + `"}]}}}`
	_, err := s.dyn.Resource(managers).Patch(t.Context(), confighub.Name, types.MergePatchType, []byte(body), metav1.PatchOptions{})
	require.NoError(t, err)
}

// awaitComplete waits until the hub reports that it is complete.
func (s *scene) awaitComplete(t *testing.T) {
	t.Helper()
	soon(t, func() error {
		cm, err := typed.Get[operatorv1.ClusterManager](t.Context(), s.dyn, managers, "", confighub.Name)
		if err == nil && !apimeta.IsStatusConditionFalse(cm.Status.Conditions, operatorv1.ConditionProgressing) {
			err = fmt.Errorf("%+v", cm.Status.Conditions)
		}
		return err
	})
}

// condition returns the condition about the tunnel; nil if there is none.
func (s *scene) condition(t *testing.T, cluster string) *metav1.Condition {
	t.Helper()
	mc, err := typed.Get[clusterv1.ManagedCluster](t.Context(), s.dyn, clusters, "", cluster)
	require.NoError(t, err)
	return apimeta.FindStatusCondition(mc.Status.Conditions, connectv1alpha1.ConditionTunnelConnected)
}

func (s *scene) awaitReason(t *testing.T, cluster string, status metav1.ConditionStatus, reason string) {
	t.Helper()
	soon(t, func() error {
		if c := s.condition(t, cluster); c == nil || c.Status != status || c.Reason != reason {
			return fmt.Errorf("the condition is %+v", c)
		}
		return nil
	})
}

func (s *scene) logHub(t *testing.T) {
	if !t.Failed() {
		return
	}
	pods := s.person(t, "kubernetes-admin", "system:masters").CoreV1().Pods(confighub.Namespace)
	list, err := pods.List(context.Background(), metav1.ListOptions{})
	require.NoError(t, err)
	for _, pod := range list.Items {
		text, err := pods.GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(context.Background())
		t.Logf("%s: %s %v", pod.Name, text, err)
	}
}
