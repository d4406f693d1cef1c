// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// example applies the files of examples/helloworld-template unchanged, in the order of
// kubectl; the objects are removed with the test.
func (s *scene) example(t *testing.T) {
	t.Helper()
	files, err := filepath.Glob("../../../examples/helloworld-template/*.yaml")
	require.NoError(t, err)
	require.Len(t, files, 3)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for part := range bytes.SplitSeq(text, []byte("\n---\n")) {
			u := &unstructured.Unstructured{}
			require.NoError(t, yaml.Unmarshal(part, &u.Object))
			resource := s.dyn.Resource(reconcile.ResourceOf(u.GroupVersionKind())).Namespace(u.GetNamespace())
			reached(t, func() error {
				_, err := resource.Apply(t.Context(), u.GetName(), u, metav1.ApplyOptions{FieldManager: "test"})
				return err
			})
			t.Cleanup(func() { require.NoError(t, resource.Delete(context.Background(), u.GetName(), metav1.DeleteOptions{})) })
		}
	}
}

func TestTheExampleTemplateComesToLabelledClusters(t *testing.T) {
	f := &fan{scene: sharedHub(t), namespace: "helloworld-template", clusters: []string{"examined"}}
	f.register(t, "examined", "agent")
	f.example(t)
	require.NoError(t, patch(f.dyn, "examined", `{"metadata":{"labels":{"helloworld":"yes"}}}`))
	f.awaitSaid(t, "examined", addonv1alpha1.ConditionRegistrationApplied, addonv1alpha1.ReasonSetPermissionApplied, "")
	f.applied(t, "examined")
	a := f.awaitSaid(t, "examined", addonv1alpha1.ConditionManifestApplied, addonv1alpha1.ReasonManifestApplied, "")
	require.Equal(t, []string{addonv1alpha1.FinalizerPreDelete}, a.Finalizers)
	require.Equal(t, addonv1alpha1.DefaultInstallNamespace, a.Status.Namespace)
	f.awaitSaid(t, "examined", addonv1alpha1.ConditionAvailable, addonv1alpha1.ReasonNoProbeResult, "helloworld-agent")
	require.Equal(t, []string{"examined/open-cluster-management:helloworld-template:clusterrole:agent ClusterRole"}, f.bound(t, "examined"))
	own := f.requestCertificate(t, a, "examined")
	soon(t, func() bool { verdict, _ := f.verdict(t, own); return verdict == "Approved" })
	require.Empty(t, f.events(t, "examined", "ManifestsQuestionable"))

	require.NoError(t, patch(f.dyn, "examined", `{"metadata":{"labels":{"helloworld":null}}}`))
	f.awaitSaid(t, "examined", addonv1alpha1.ConditionHookManifestCompleted, addonv1alpha1.ReasonHookNotCompleted, "helloworld-cleanup")
	f.hookRan(t, "examined", addonv1alpha1.DefaultInstallNamespace, "helloworld-cleanup")
	soon(t, func() bool { return f.instance(t, "examined") == nil && len(f.bound(t, "examined")) == 0 })
}
