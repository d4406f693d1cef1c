// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"bytes"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-ocm/kubectl-ocm/config/crd"
	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	authenticationv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/authentication/v1beta1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

var identities = authenticationv1beta1.GroupVersion.WithResource("managedserviceaccounts")

// accountGates switches the gates of ManagedServiceAccounts.
func (s *scene) accountGates(t *testing.T, gates string) {
	t.Helper()
	_, err := s.dyn.Resource(managers).Patch(t.Context(), hub.Name, types.MergePatchType,
		[]byte(`{"spec":{"addOnManagerConfiguration":{"featureGates":[`+gates+`]}}}`), metav1.PatchOptions{})
	require.NoError(t, err)
}

// saysServed waits for the reason of the condition Served; an empty one means that it is absent.
func (s *scene) saysServed(t *testing.T, key reconcile.Key, reason string) {
	t.Helper()
	var last []metav1.Condition
	soon(t, func() bool {
		a, err := typed.Get[authenticationv1beta1.ManagedServiceAccount](t.Context(), s.dyn, identities, key.Namespace, key.Name)
		require.NoError(t, err)
		last = a.Status.Conditions
		c := apimeta.FindStatusCondition(last, authenticationv1beta1.ConditionServed)
		return reason == "" && c == nil || c != nil && c.Reason == reason
	}, "%s: %+v", reason, &last)
}

// TestServiceAccountsOfClusters switches the gates on one hub, because they apply to the whole
// hub.
func TestServiceAccountsOfClusters(t *testing.T) {
	t.Parallel()
	f := &fan{scene: ownHub(t), namespace: authenticationv1beta1.AddOnName, clusters: []string{"known"}}
	_, err := f.dyn.Resource(definitions).Get(t.Context(), crd.ManagedServiceAccounts, metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "without the gate there is no such API")
	f.accountGates(t, `{"feature":"ManagedServiceAccount","mode":"Enable"}`)
	f.register(t, "known", "agent")
	key := reconcile.Key{Namespace: "known", Name: "web"}
	request := &unstructured.Unstructured{}
	require.NoError(t, request.UnmarshalJSON([]byte(`{"apiVersion":"authentication.open-cluster-management.io/v1beta1","kind":"ManagedServiceAccount",
		"metadata":{"namespace":"known","name":"web"},"spec":{"rotation":{},"ttlSecondsAfterCreation":1}}`)))
	soon(t, func() bool {
		_, err = f.dyn.Resource(identities).Namespace("known").Create(t.Context(), request, metav1.CreateOptions{})
		return err == nil
	}, "the API is not served: %v", &err)
	f.saysServed(t, key, authenticationv1beta1.ReasonAddOnMissing)

	f.enable(t, "known")
	f.saysServed(t, key, authenticationv1beta1.ReasonRightsMissing)
	f.administer(t, "ClusterRole", "ClusterRoleBinding", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
	f.saysServed(t, key, authenticationv1beta1.ReasonLifetimeNotEnabled)
	role, err := typed.Get[rbacv1.Role](t.Context(), f.dyn, rbacv1.SchemeGroupVersion.WithResource("roles"), "known", authenticationv1beta1.AgentRole)
	require.NoError(t, err)
	require.Equal(t, []string{"web"}, role.Rules[len(role.Rules)-1].ResourceNames)
	a := f.awaitSaid(t, "known", addonv1alpha1.ConditionRegistrationApplied, addonv1alpha1.ReasonSetPermissionApplied, "")
	require.Contains(t, a.Status.Registrations[0].Subject.Groups, "system:open-cluster-management:cluster:known:addon:managed-serviceaccount",
		"the rights are bound to the group of the certificate")
	require.Empty(t, f.events(t, "known", "ManifestsQuestionable"))

	f.accountGates(t, `{"feature":"ManagedServiceAccount","mode":"Enable"},{"feature":"ManagedServiceAccountEphemeralIdentity","mode":"Enable"}`)
	soon(t, func() bool {
		_, err := f.dyn.Resource(identities).Namespace("known").Get(t.Context(), "web", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	}, "it is not deleted at its end")
	f.accountGates(t, "")
	f.awaitHub(t)
	_, err = f.dyn.Resource(definitions).Get(t.Context(), crd.ManagedServiceAccounts, metav1.GetOptions{})
	require.NoError(t, err, "the API stays")
}

// administer applies the objects of the add-on's file that have one of the kinds.
func (f *fan) administer(t *testing.T, kinds ...string) {
	t.Helper()
	text, err := os.ReadFile("../../../config/addon/managed-serviceaccount.yaml")
	require.NoError(t, err)
	for part := range bytes.SplitSeq(text, []byte("\n---\n")) {
		u := &unstructured.Unstructured{}
		require.NoError(t, yaml.Unmarshal(part, &u.Object))
		if !slices.Contains(kinds, u.GetKind()) {
			continue
		}
		reached(t, func() error {
			_, err := f.dyn.Resource(reconcile.ResourceOf(u.GroupVersionKind())).Apply(t.Context(), u.GetName(), u, metav1.ApplyOptions{FieldManager: "test"})
			return err
		})
	}
}

// enable offers the add-on, and enables it on a cluster.
func (f *fan) enable(t *testing.T, cluster string) {
	t.Helper()
	f.administer(t, "ClusterManagementAddOn", "AddOnTemplate")
	f.write(t, addons, `{"apiVersion":"addon.open-cluster-management.io/v1alpha1","kind":"ManagedClusterAddOn",
		"metadata":{"namespace":"`+cluster+`","name":"managed-serviceaccount"},"spec":{}}`)
}
