// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-ocm/kubectl-ocm/config/crd"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// TestTheExamplesOfTheReferenceAreAdmitted sends every example of docs/reference to
// a hub with its admission, strictly and without storing it.
func TestTheExamplesOfTheReferenceAreAdmitted(t *testing.T) {
	s := sharedHub(t)
	// Definitions for a managed cluster, and for gates that are off.
	for _, name := range []string{
		crd.Klusterlets, crd.ClusterProfiles, crd.ManagedServiceAccounts, crd.ClusterPermissions,
		"appliedmanifestworks.work.open-cluster-management.io", "clusterclaims.cluster.open-cluster-management.io",
	} {
		s.serve(t, name)
	}
	_, err := s.dyn.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).
		Create(t.Context(), namespaced("eu1"), metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		require.NoError(t, err)
	}
	pages, err := filepath.Glob("../../../docs/reference/*.md")
	require.NoError(t, err)
	admitted := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
			for _, document := range strings.Split(block[1], "---\n") {
				body, err := yaml.YAMLToJSON([]byte(document))
				require.NoError(t, err)
				u := &unstructured.Unstructured{}
				require.NoError(t, u.UnmarshalJSON(body))
				soon(t, func() bool { // a definition that is established may not be served yet
					_, err = s.dyn.Resource(reconcile.ResourceOf(u.GroupVersionKind())).Namespace(u.GetNamespace()).Patch(
						t.Context(), u.GetName(), types.ApplyPatchType, body,
						metav1.PatchOptions{FieldManager: "reader", Force: ptr.To(true), FieldValidation: metav1.FieldValidationStrict, DryRun: []string{metav1.DryRunAll}},
					)
					return !apierrors.IsNotFound(err)
				}, "%s: %s %s: %v", filepath.Base(page), u.GetKind(), u.GetName(), &err)
				require.NoError(t, err, "%s: %s %s", filepath.Base(page), u.GetKind(), u.GetName())
				admitted++
			}
		}
	}
	require.GreaterOrEqual(t, admitted, 17)
}

func namespaced(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}}}
}

// serve installs a definition for the duration of a test, unless it exists.
func (s *scene) serve(t *testing.T, name string) {
	t.Helper()
	served := s.dyn.Resource(definitions)
	wanted, err := crd.Any(name)
	require.NoError(t, err)
	if _, err = served.Create(t.Context(), wanted, metav1.CreateOptions{}); apierrors.IsAlreadyExists(err) {
		return
	}
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx := context.Background()
		require.NoError(t, served.Delete(ctx, name, metav1.DeleteOptions{}))
		soon(t, func() bool {
			_, err := served.Get(ctx, name, metav1.GetOptions{})
			return apierrors.IsNotFound(err)
		}, "%s stays", name)
	})
	soon(t, func() bool {
		u, err := served.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return false
		}
		conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
		for _, c := range conditions {
			if c, ok := c.(map[string]any); ok && c["type"] == "Established" && c["status"] == "True" {
				return true
			}
		}
		return false
	}, "%s is not served", name)
}
