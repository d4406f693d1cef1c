// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/operator/shared"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
)

// TestWhatAddOnsNeedIsCopiedToWhereTheyRun, but not over an object of somebody else.
func TestWhatAddOnsNeedIsCopiedToWhereTheyRun(t *testing.T) {
	for name, of := range map[string]func(*State) *original{
		"the image pull secret":     func(s *State) *original { return &s.Pull },
		"the limits of connections": func(s *State) *original { return &s.Profile },
	} {
		t.Run(name, func(t *testing.T) {
			s := serving()
			o := of(&s)
			applied := func() (out []string) {
				for _, at := range writesTo(s, o.resource) {
					require.Equal(t, o.name, at.Name)
					require.False(t, at.removed, at.Namespace)
					out = append(out, at.Namespace)
				}
				return out
			}
			s.Namespace, s.AddOnNamespace = operatorv1.NamespaceAgent, shared.Namespace{ResourceVersion: "1"}
			s.Others = []string{"second"}
			s.AddOnNamespaces = []string{operatorv1.NamespaceAgent, "asks", "has", "second", "gone"}
			o.copies = map[string]duplicate{
				"has": {namespace: "has"}, "second": {namespace: "second", owner: "second"}, "gone": {namespace: "gone", owner: "left"},
				"old": {namespace: "old", owner: "klusterlet"},
			}
			left := writesTo(s, o.resource)
			require.Len(t, left, 1, "there is nothing to copy")
			require.True(t, left[0].removed)
			require.Equal(t, "old", left[0].Namespace)

			o.template = &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": map[string]string{
				"secrets": "Secret", "configmaps": "ConfigMap",
			}[o.resource.Resource]}}
			require.Equal(t, []string{"asks", "gone", operatorv1.NamespaceAgentAddOn}, applied())
			s.AddOnNamespace.Leaving = true
			require.Equal(t, []string{"asks", "gone"}, applied())
			s.Reading = true
			require.Empty(t, applied(), "the copies are not read yet")
		})
	}
}
