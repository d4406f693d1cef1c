// SPDX-License-Identifier: Apache-2.0

package template_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/addon/template"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
)

func TestRegistrations(t *testing.T) {
	in := registered(t, given(t, deployment), `
- type: KubeClient
  kubeClient: {hubPermissions: [{type: CurrentCluster, currentCluster: {clusterRoleName: one}}]}
- type: CustomSigner
  customSigner: {signerName: example.com/a, signingCA: {name: ca, namespace: ns}}
- type: CustomSigner
  customSigner: {signerName: example.com/b, signingCA: {name: ca}, subject: {user: u, groups: [g], organizationUnit: [o]}}
- type: KubeClient
  kubeClient: {hubPermissions: [{type: SingleNamespace, singleNamespace: {namespace: shared,
    roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: two}}}]}
`)
	subject := addonv1alpha1.Subject{
		User: "system:open-cluster-management:cluster:cluster1:addon:hello:agent:hello-agent",
		Groups: []string{
			"system:open-cluster-management:cluster:cluster1:addon:hello", "system:open-cluster-management:addon:hello",
		},
	}
	require.Empty(t, cmp.Diff([]template.Registration{
		{
			Config: addonv1alpha1.RegistrationConfig{SignerName: "kubernetes.io/kube-apiserver-client", Subject: subject},
			HubPermissions: []addonv1alpha1.HubPermissionConfig{
				{Type: "CurrentCluster", CurrentCluster: &addonv1alpha1.CurrentClusterBindingConfig{ClusterRoleName: "one"}},
				{
					Type: "SingleNamespace",
					SingleNamespace: &addonv1alpha1.SingleNamespaceBindingConfig{
						Namespace: "shared",
						RoleRef:   addonv1alpha1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: "two"},
					},
				},
			},
		},
		{
			Config:    addonv1alpha1.RegistrationConfig{SignerName: "example.com/a", Subject: subject},
			SigningCA: &addonv1alpha1.SigningCARef{Name: "ca", Namespace: "ns"},
		},
		{
			Config: addonv1alpha1.RegistrationConfig{
				SignerName: "example.com/b",
				Subject:    addonv1alpha1.Subject{User: "u", Groups: []string{"g"}, OrganizationUnits: []string{"o"}},
			},
			SigningCA: &addonv1alpha1.SigningCARef{Name: "ca"},
		},
	}, rendered(t, in).Registrations))
	require.Empty(t, rendered(t, given(t, deployment)).Registrations)
}

// The name of a signer may be longer than that of a volume.
func TestLongSignersHaveVolumesOfTheirOwn(t *testing.T) {
	long := "example.com/" + strings.Repeat("a", 80)
	in := registered(t, given(t, deployment), `
- {type: CustomSigner, customSigner: {signerName: `+long+`1, signingCA: {name: ca}}}
- {type: CustomSigner, customSigner: {signerName: `+long+`2, signingCA: {name: ca}}}
`)
	u := rendered(t, in).Manifests[0]
	one, two := at(
		t, u, "spec", "template", "spec", "volumes", 0, "name",
	).(string), at(t, u, "spec", "template", "spec", "volumes", 1, "name").(string)
	require.NotEqual(t, one, two)
	require.Len(t, one, 63)
	require.True(t, strings.HasPrefix(one, "cert-example-com-aaa"), one)
	require.Equal(
		t, "hello-"+strings.ReplaceAll(long, "/", "-")+"1-client-cert",
		at(t, u, "spec", "template", "spec", "volumes", 0, "secret", "secretName"),
	)
}

func TestRegistrationsThatCannotBe(t *testing.T) {
	const signer = "{type: CustomSigner, customSigner: {signerName: %s, signingCA: {name: ca}}}"
	named := func(name string) string { return strings.Replace(signer, "%s", name, 1) }
	for name, tc := range map[string]struct{ spec, want string }{
		"an unknown type": {"[{type: Other}]", "spec.registration[0].type: must be KubeClient or CustomSigner; correct it"},
		"no signer": {
			"[{type: KubeClient}, {type: CustomSigner}]",
			"spec.registration[1].customSigner: must be set; name the signer and its authority",
		},
		"the signer of the hub": {
			"[" + named("kubernetes.io/kube-apiserver-client") + "]",
			"spec.registration[0].customSigner.signerName: is the signer of the hub's API server; use the type KubeClient",
		},
		"the same signer twice": {
			"[" + named("example.com/a") + "," + named("example.com/a") + "]",
			"spec.registration[1].customSigner.signerName: is kept in the secret of another registration; " +
				"name each signer once; two of them must differ by more than / and -",
		},
		"two signers in one secret": {
			"[" + named("a.com/b-c") + "," + named("a.com-b/c") + "]",
			"spec.registration[1].customSigner.signerName: is kept in the secret of another registration; " +
				"name each signer once; two of them must differ by more than / and -",
		},
		"no role": {
			"[{type: KubeClient, kubeClient: {hubPermissions: [{type: CurrentCluster}]}}]",
			"spec.registration[0].kubeClient.hubPermissions[0].currentCluster.clusterRoleName: must be set; say which role the agent gets",
		},
		"no namespace": {
			"[{type: KubeClient, kubeClient: {hubPermissions: [{type: SingleNamespace}]}}]",
			"spec.registration[0].kubeClient.hubPermissions[0].singleNamespace.namespace: must be set; say which role the agent gets",
		},
		"no role in that namespace": {
			"[{type: KubeClient, kubeClient: {hubPermissions: [{type: SingleNamespace, " +
				"singleNamespace: {namespace: x, roleRef: {kind: Role, name: '', apiGroup: ''}}}]}}]",
			"spec.registration[0].kubeClient.hubPermissions[0].singleNamespace.roleRef.name: must be set; say which role the agent gets",
		},
		"an unknown kind of a right": {
			"[{type: KubeClient, kubeClient: {hubPermissions: [{type: All}]}}]",
			"spec.registration[0].kubeClient.hubPermissions[0].type: must be set; say which role the agent gets",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := template.Render(registered(t, given(t, deployment), tc.spec))
			require.EqualError(t, err, "AddOnTemplate hello-1: "+tc.want)
		})
	}
}
