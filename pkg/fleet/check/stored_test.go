// SPDX-License-Identifier: Apache-2.0

package check

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// definitionOf returns a definition of versions such as "v1:served,storage v1alpha1:" that is stored
// in others.
func definitionOf(versions string, stored ...string) *unstructured.Unstructured {
	list := []any{}
	for v := range strings.FieldsSeq(versions) {
		name, is, _ := strings.Cut(v, ":")
		list = append(list, map[string]any{"name": name, "served": strings.Contains(is, "served"), "storage": strings.Contains(is, "storage")})
	}
	in := []any{}
	for _, s := range stored {
		in = append(in, s)
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"versions": list}, "status": map[string]any{"storedVersions": in},
	}}
}

func TestVersionsInWhichObjectsAreStoredAreCompared(t *testing.T) {
	const own = "v1beta1:served v1beta2:served,storage"
	for name, tc := range map[string]struct {
		live, own    string
		stored       []string
		gone, hidden []string
		target       string
		change       string
	}{
		"all are served": {
			live: own, own: own,
			stored: []string{"v1beta1", "v1beta2"},
		},
		"one that the hub's definition lacks": {
			live: "v1alpha1:served v1beta2:served,storage", own: own,
			stored: []string{"v1alpha1", "v1beta2"},
			gone:   []string{"v1alpha1"}, target: "v1beta2",
		},
		"the one that is stored now is gone": {
			live: "v1alpha1:served,storage v1beta1:served v1beta2:served", own: own,
			stored: []string{"v1alpha1"},
			gone:   []string{"v1alpha1"}, target: "v1beta2",
			change: `[{"op":"replace","path":"/spec/versions/0/storage","value":false},{"op":"replace","path":"/spec/versions/2/storage","value":true}]`,
		},
		"one that is not served": {
			live: "v1beta1: v1beta2:served,storage", own: own,
			stored: []string{"v1beta1", "v1beta2"},
			hidden: []string{"v1beta1"}, target: "v1beta2",
		},
		"the version stored now stays, though there is a newer one": {
			live: "v1alpha1:served v1beta1:served,storage v1beta2:served", own: own,
			stored: []string{"v1alpha1", "v1beta1"},
			gone:   []string{"v1alpha1"}, target: "v1beta1",
		},
		"a newer release stored it": {
			live: "v1beta2:served,storage v1:served", own: own,
			stored: []string{"v1", "v1beta2"},
		},
		"the hub of another operator is measured by itself": {
			live:   "v1alpha1:served v1beta2:served,storage",
			stored: []string{"v1alpha1", "v1beta2"},
		},
		"nothing that is served stays": {
			live: "v1alpha1:served,storage", own: own,
			stored: []string{"v1alpha1"},
			gone:   []string{"v1alpha1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var declared *unstructured.Unstructured
			if tc.own != "" {
				declared = definitionOf(tc.own)
			}
			s := staleStoreOf(definitionOf(tc.live, tc.stored...), declared)
			if tc.gone == nil && tc.hidden == nil {
				require.Nil(t, s)
				return
			}
			require.NotNil(t, s)
			require.Equal(t, tc.gone, s.gone)
			require.Equal(t, tc.hidden, s.hidden)
			require.Equal(t, tc.target, s.target)
			if tc.target != "" {
				change, err := s.change()
				require.NoError(t, err)
				require.Equal(t, tc.change, change)
			}
		})
	}
}
