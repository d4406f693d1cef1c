// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// credentialScene is a hub with both gates, and a cluster whose token is to be copied.
type credentialScene struct{ *scene }

// TestTokensAreCopiedOnlyWithBothGatesAndTheRights has a hub of its own, because gates and rights
// apply to the whole hub.
func TestTokensAreCopiedOnlyWithBothGatesAndTheRights(t *testing.T) {
	t.Parallel()
	s := credentialScene{ownHub(t)}
	s.open(t, "readers")
	s.member(t, "lent", map[string]string{clusterv1.LabelClusterSet: "lenders"})
	s.open(t, "lent")
	require.NoError(t, s.makeSet(t, "lenders", "{}"))
	require.NoError(t, s.bind(t, bindings, "readers", "lenders", "{clusterSet: lenders}"))
	s.gate(t, "Enable")
	s.accountGates(t, `{"feature":"ManagedServiceAccount","mode":"Enable"}`)
	s.awaitProfiles(t, "readers", "lent")
	s.lend(t, "first")

	// Without the rights the hub works, and copies nothing.
	s.awaitHub(t)
	require.Nil(t, s.copy(t))
	s.grantCredentials(t)
	s.awaitCopy(t, "first")
	s.lend(t, "second")
	s.awaitCopy(t, "second")

	// Without the gate of the accounts the copy stays; without that of profiles it goes with them.
	s.accountGates(t, "")
	s.awaitHub(t)
	s.lend(t, "third")
	s.accountGates(t, `{"feature":"ManagedServiceAccount","mode":"Enable"}`)
	s.awaitCopy(t, "third")
	s.gate(t, "Disable")
	s.awaitProfiles(t, "readers")
	soon(t, func() bool { return s.copy(t) == nil }, "the copy stays")
}

// lend writes the ManagedServiceAccount web with a token.
func (s credentialScene) lend(t *testing.T, token string) {
	t.Helper()
	s.lendAs(t, "web", token)
}

// lendAs writes a ManagedServiceAccount with a token, as its agent would.
func (s credentialScene) lendAs(t *testing.T, name, token string) {
	t.Helper()
	request := &unstructured.Unstructured{}
	require.NoError(t, request.UnmarshalJSON([]byte(`{"apiVersion":"authentication.open-cluster-management.io/v1beta1","kind":"ManagedServiceAccount",
		"metadata":{"namespace":"lent","name":"`+name+`","labels":{"authentication.open-cluster-management.io/sync-to-clusterprofile":"true"}},"spec":{"rotation":{}}}`)))
	var live *unstructured.Unstructured
	var err error
	soon(t, func() bool {
		live, err = s.dyn.Resource(identities).Namespace("lent").Apply(t.Context(), name, request, metav1.ApplyOptions{FieldManager: "test"})
		return err == nil
	}, "the API is not served: %v", &err)
	u, err := typed.ToUnstructured(&corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{"authentication.open-cluster-management.io/is-managed-serviceaccount": "true"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: live.GetAPIVersion(), Kind: live.GetKind(), Name: name, UID: live.GetUID()}},
		},
		Type: corev1.SecretTypeOpaque, Data: map[string][]byte{"token": []byte(token), "ca.crt": []byte("authority")},
	})
	require.NoError(t, err)
	_, err = s.dyn.Resource(secrets).Namespace("lent").Apply(t.Context(), name, u, metav1.ApplyOptions{FieldManager: "test"})
	require.NoError(t, err)
}

// copy returns the copy, or nil.
func (s credentialScene) copy(t *testing.T) *corev1.Secret {
	t.Helper()
	found, err := typed.Get[corev1.Secret](t.Context(), s.dyn, secrets, "readers", "lent-web")
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(t, err)
	return found
}

func (s credentialScene) awaitCopy(t *testing.T, token string) {
	t.Helper()
	soon(t, func() bool {
		found := s.copy(t)
		return found != nil && string(found.Data["token"]) == token
	}, "the token is not copied")
}

// grantCredentials does what hub.AllowCredentials does.
func (s credentialScene) grantCredentials(t *testing.T) {
	t.Helper()
	const subjects = `[{"kind":"ServiceAccount","namespace":"open-cluster-management-hub","name":"addon-manager-controller-sa"}]`
	_, err := s.dyn.Resource(clusterRoleBinding).Patch(t.Context(), hub.CredentialsRole, types.MergePatchType,
		[]byte(`{"subjects":`+subjects+`}`), metav1.PatchOptions{})
	require.NoError(t, err)
}
