// SPDX-License-Identifier: Apache-2.0

package addon

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

func TestNamespaceIsWhatTheHubSaysElseWhatTheUserSaysElseTheDefault(t *testing.T) {
	a := &addonv1alpha1.ManagedClusterAddOn{}
	require.Equal(t, "open-cluster-management-agent-addon", Namespace(a))
	a.Spec.InstallNamespace = "user"
	require.Equal(t, "user", Namespace(a))
	a.Status.Namespace = "hub"
	require.Equal(t, "hub", Namespace(a))
}

func TestHosted(t *testing.T) {
	a := &addonv1alpha1.ManagedClusterAddOn{}
	require.False(t, Hosted(a))
	a.Annotations = map[string]string{addonv1alpha1.AnnotationHostingClusterName: ""}
	require.False(t, Hosted(a), "an empty annotation means nothing")
	a.Annotations[addonv1alpha1.AnnotationHostingClusterName] = "m"
	require.True(t, Hosted(a))
}

func TestOfAnAddOnIsKeptWhatIsReadAndNoMore(t *testing.T) {
	want := addonv1alpha1.ManagedClusterAddOn{TypeMeta: metav1.TypeMeta{
		APIVersion: addonv1alpha1.GroupVersion.String(),
		Kind:       "ManagedClusterAddOn",
	}, ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "c1", UID: "u", ResourceVersion: "1",
		Annotations: map[string]string{addonv1alpha1.AnnotationHostingClusterName: "m"}}}
	want.Spec.InstallNamespace, want.Status.Namespace = "user", "hub"
	want.Status.Registrations = []addonv1alpha1.RegistrationConfig{{SignerName: "example.com/s"}}
	want.Status.Conditions = []metav1.Condition{{Type: "Available", Status: "True"}}
	large := want.DeepCopy()
	large.Labels = map[string]string{"a": "b"}
	large.Annotations["notes"] = strings.Repeat("x", maxAddOn)
	large.Status.RelatedObjects = []addonv1alpha1.ObjectReference{{Name: "x"}}
	large.Status.AddOnMeta.Description = strings.Repeat("x", maxAddOn)
	u, err := typed.ToUnstructured(large)
	require.NoError(t, err)
	got, err := decode(u)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(&want, got))

	large.Status.Conditions[0].Message = strings.Repeat("x", maxAddOn)
	u, err = typed.ToUnstructured(large)
	require.NoError(t, err)
	got, err = decode(u)
	require.Nil(t, got)
	require.ErrorContains(t, err, "more than 65536")
}
