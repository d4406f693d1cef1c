// SPDX-License-Identifier: Apache-2.0

package addonkit

import (
	"testing"

	"github.com/stretchr/testify/require"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
)

func TestMark(t *testing.T) {
	mark, complete := Mark(nil)
	require.True(t, complete)
	require.Empty(t, mark)
	ref := func(group, resource, namespace, hash string) addonv1alpha1.ConfigReference {
		return addonv1alpha1.ConfigReference{
			ConfigGroupResource: addonv1alpha1.ConfigGroupResource{Group: group, Resource: resource},
			DesiredConfig:       &addonv1alpha1.ConfigSpecHash{ConfigReferent: addonv1alpha1.ConfigReferent{Namespace: namespace, Name: "x"}, SpecHash: hash},
		}
	}
	refs := []addonv1alpha1.ConfigReference{ref("g.io", "b", "n", "2"), ref("", "a", "", "1")}
	mark, complete = Mark(refs)
	require.True(t, complete)
	require.Equal(t, `{"a//x":"1","b.g.io/n/x":"2"}`, mark, "an empty namespace leaves two slashes")
	_, complete = Mark(append(refs, ref("", "c", "", "")))
	require.False(t, complete, "a hash is missing")
}
