// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
)

// TestAnAddOnUnderTheTokenDriver runs the example add-on on a cluster whose agent
// registers add-ons with tokens, with the real processes of hub, agent and add-on: from
// the account on the hub to what the add-on does with the token.
func TestAnAddOnUnderTheTokenDriver(t *testing.T) {
	t.Parallel()
	deploy, err := os.ReadFile("../../../examples/helloworld-addon/deploy.yaml")
	require.NoError(t, err)
	e := &example{program: harness.Program(t, "examples/helloworld-addon")}
	e.hub = harness.FreshWithNode(t, "hub", map[string]string{"ocm-hub": harness.Program(t, "controllers/ocm-hub"), "helloworld-addon": e.program})
	e.c1 = harness.FreshWithNode(t, "c1", map[string]string{"ocm-agent": harness.Program(t, "controllers/ocm-agent"), "helloworld-addon": e.program})
	kubeconfig(t, e.hub, e.c1)
	require.Zero(t, run(t, "hub", "init", "--addon-rights", "narrow", "--context", "hub", "--timeout", "5m").code)
	require.Zero(t, run(t, "join", "c1", "--context", "c1", "--hub-context", "hub", "--accept", "--timeout", "5m").code)
	_, err = e.c1.Dynamic(t).Resource(operatorv1.GroupVersion.WithResource("klusterlets")).Patch(t.Context(), "klusterlet", types.MergePatchType,
		[]byte(`{"spec":{"registrationConfiguration":{"addOnKubeClientRegistrationDriver":{"authType":"token","token":{"expirationSeconds":3600}}}}}`),
		metav1.PatchOptions{})
	require.NoError(t, err)

	e.apply(t, deploy)
	require.Zero(t, run(t, "addon", "enable", "helloworld", "-c", "c1", "--install-namespace", "default", "--context", "hub").code)
	mended(t, "OCM0711", "addon", "helloworld", "--context", "hub")
	until(t, func() error { return e.unavailable(t) })
	hub := e.hub.Dynamic(t)
	// The agent may have started with a certificate before it knew of the change.
	until(t, func() error {
		account, err := typed.Get[corev1.ServiceAccount](t.Context(), hub, corev1.SchemeGroupVersion.WithResource("serviceaccounts"), "c1", "helloworld-agent")
		if err != nil {
			return err
		}
		a, err := typed.Get[addonv1alpha1.ManagedClusterAddOn](t.Context(), hub, instances, "c1", "helloworld")
		if err != nil {
			return err
		}
		ready := apimeta.FindStatusCondition(a.Status.Conditions, addonv1alpha1.ConditionTokenInfrastructureReady)
		if ready == nil || !strings.Contains(ready.Message, string(account.UID)) {
			return errors.New("the account is not shown")
		}
		if !apimeta.IsStatusConditionTrue(a.Status.Conditions, addonv1alpha1.ConditionTokenRefreshed) {
			return errors.New("the token is not shown")
		}
		return nil
	})
	var secret *corev1.Secret
	until(t, func() error {
		secret, err = typed.Get[corev1.Secret](t.Context(), e.c1.Dynamic(t), secrets, "default", "helloworld-hub-kubeconfig")
		if err == nil && len(secret.Data["token"]) == 0 {
			err = errors.New("the secret holds no token")
		}
		return err
	})
	require.Empty(t, secret.Data["tls.key"])
	payload, err := base64.RawURLEncoding.DecodeString(strings.Split(string(secret.Data["token"]), ".")[1])
	require.NoError(t, err)
	require.Contains(t, string(payload), `"system:serviceaccount:c1:helloworld-agent"`)

	// A wait for a configuration ends when the cluster has it, also for new content of an
	// existing one.
	small := filepath.Join(t.TempDir(), "small.yaml")
	for _, memory := range []string{"48Mi", "40Mi"} {
		require.NoError(t, os.WriteFile(small, []byte(`apiVersion: addon.open-cluster-management.io/v1alpha1
kind: AddOnDeploymentConfig
metadata: {name: small, namespace: c1}
spec:
  agentInstallNamespace: ""
  resourceRequirements: [{containerID: "deployments:helloworld-agent:agent", resources: {limits: {memory: `+memory+`}}}]
`), 0o600))
		require.Zero(t, run(t, "addon", "enable", "helloworld", "-c", "c1", "--config", small, "--context", "hub", "--wait").code)
		d, err := typed.Get[appsv1.Deployment](t.Context(), e.c1.Dynamic(t), deployments, "default", "helloworld-agent")
		require.NoError(t, err)
		require.Equal(t, memory, d.Spec.Template.Spec.Containers[0].Resources.Limits.Memory().String())
	}

	// The add-on works with it.
	e.greet(t)
	e.has(t, "greeting", "world")
	require.Zero(t, run(t, "addon", "disable", "helloworld", "-c", "c1", "--context", "hub", "--yes").code)
	e.requireRemoved(t)
	absent(t, e.c1, secrets, "default", "helloworld-hub-kubeconfig")
	absent(t, e.hub, corev1.SchemeGroupVersion.WithResource("serviceaccounts"), "c1", "helloworld-agent")
	absent(t, e.hub, rbacv1.SchemeGroupVersion.WithResource("rolebindings"), "c1", "helloworld-token-role")
}
