// SPDX-License-Identifier: Apache-2.0

package addonkit_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-ocm/kubectl-ocm/internal/identity"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit/registration"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness/addontest"
)

var bindings = rbacv1.SchemeGroupVersion.WithResource("rolebindings")

// answering returns the rights to approve certificate requests for a signer, and to sign
// them.
func answering(signer string, verbs ...string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{
			APIGroups: []string{"certificates.k8s.io"},
			Resources: []string{"certificatesigningrequests/approval", "certificatesigningrequests/status"},
			Verbs:     []string{"update"},
		},
		{
			APIGroups:     []string{"certificates.k8s.io"},
			Resources:     []string{"signers"},
			ResourceNames: []string{signer},
			Verbs:         verbs,
		},
	}
}

func TestAnAddOnFromItsInstallationToItsEnd(t *testing.T) {
	given := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "watch"}}
	h := addontest.New(t, hello{}, append(answering("kubernetes.io/kube-apiserver-client", "approve"), given)...)
	here := h.Install("c1", "")
	a := h.Await(here, addonv1alpha1.ConditionRegistrationApplied, addonv1alpha1.ReasonSetPermissionApplied)
	require.Equal(t, identity.AddOn{Cluster: "c1", Name: "hello"}.User("hello"), a.Status.Registrations[0].Subject.User)
	require.Equal(t, addonv1alpha1.DefaultInstallNamespace, a.Status.Namespace)
	binding, err := typed.Get[rbacv1.RoleBinding](t.Context(), h.Admin, bindings, "c1", "open-cluster-management:hello:role:agent")
	require.NoError(t, err)
	require.Equal(t, a.Status.Registrations[0].Subject.User, binding.Subjects[0].Name)

	h.Report("c1", "addon-hello-deploy-0", "")
	work, err := typed.Get[workv1.ManifestWork](t.Context(), h.Admin, addontest.Works, "c1", "addon-hello-deploy-0")
	require.NoError(t, err)
	require.True(t, metav1.IsControlledBy(work, a), "garbage collection takes it with the instance")
	a = h.Await(here, addonv1alpha1.ConditionManifestApplied, addonv1alpha1.ReasonManifestApplied)
	require.Equal(t, addonv1alpha1.HealthCheckModeCustomized, a.Status.HealthCheck.Mode)
	h.Await(here, addonv1alpha1.ConditionAvailable, addonv1alpha1.ReasonWorkApplied)
	require.Equal(t, []string{addonv1alpha1.FinalizerPreDelete}, a.Finalizers)
	other := h.Ask("c10", a)
	h.Issued(h.Ask("c1", a))
	require.True(t, registration.Open(h.Request(other)), "the agent of another cluster gets nothing")

	require.NoError(t, h.Admin.Resource(addontest.AddOns).Namespace("c1").Delete(t.Context(), "hello", metav1.DeleteOptions{}))
	h.Await(here, addonv1alpha1.ConditionHookManifestCompleted, addonv1alpha1.ReasonHookNotCompleted)
	h.Report("c1", "addon-hello-pre-delete", `{"resourceMeta":{"ordinal":0,"group":"batch","version":"v1","kind":"Job","resource":"jobs",
		"namespace":"open-cluster-management-agent-addon","name":"goodbye"},"conditions":[],
		"statusFeedback":{"values":[{"name":"JobComplete","fieldValue":{"type":"String","string":"True"}}]}}`)
	for resource, name := range map[schema.GroupVersionResource]string{
		addontest.AddOns: "hello", bindings: binding.Name, rbacv1.SchemeGroupVersion.WithResource("roles"): "open-cluster-management:hello:agent",
	} {
		h.Gone(resource, reconcile.Key{Namespace: "c1", Name: name})
	}
}
