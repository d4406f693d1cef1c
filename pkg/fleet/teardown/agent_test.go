// SPDX-License-Identifier: Apache-2.0

package teardown

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
)

// TestWhatAgentsShareHasAnOwnerThatRemovesIt deletes the heir at the moment in which it inherits:
// then nobody else would remove the object.
func TestWhatAgentsShareHasAnOwnerThatRemovesIt(t *testing.T) {
	for name, tc := range map[string]struct {
		leaves bool
		want   string
	}{
		"the heir stays":      {false, "second"},
		"the heir leaves too": {true, "first"},
	} {
		t.Run(name, func(t *testing.T) {
			heir := &unstructured.Unstructured{Object: map[string]any{"apiVersion": operatorv1.GroupVersion.String(), "kind": "Klusterlet"}}
			heir.SetName("second")
			shared := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
			shared.SetName(operatorv1.NamespaceAgentAddOn)
			shared.SetLabels(map[string]string{operatorv1.LabelCreatedByKlusterlet: "first"})
			client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
				map[schema.GroupVersionResource]string{klusterlets: "KlusterletList", namespaces: "NamespaceList"}, heir, shared)
			client.PrependReactor("patch", "namespaces", func(clienttesting.Action) (bool, runtime.Object, error) {
				if tc.leaves && heir.GetDeletionTimestamp() == nil {
					heir.SetDeletionTimestamp(new(metav1.Now()))
					return false, nil, client.Tracker().Update(klusterlets, heir, "")
				}
				return false, nil, nil
			})
			a := &agentRemoval{client: client, name: "first"}
			inherited, err := a.bequeath(t.Context(), namespaces, shared, a.heir)
			require.NoError(t, err)
			require.Equal(t, !tc.leaves, inherited)
			live, err := a.readNamespace(t.Context(), shared.GetName())
			require.NoError(t, err)
			require.Equal(t, tc.want, live.GetLabels()[operatorv1.LabelCreatedByKlusterlet])
		})
	}
}
