// SPDX-License-Identifier: Apache-2.0

package request

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

func TestATokenListsWhoJoinedByIt(t *testing.T) {
	token := Token{ID: "abc123", Type: "serviceaccount", credential: "JTI=1"}
	request := func(cluster, credential, certificate string) unstructured.Unstructured {
		u := unstructured.Unstructured{Object: map[string]any{
			"spec":   map[string]any{"extra": map[string]any{clusterv1.ExtraCredentialID: []any{credential}}},
			"status": map[string]any{"certificate": certificate},
		}}
		u.SetLabels(map[string]string{clusterv1.LabelClusterName: cluster})
		return u
	}
	noted := func(name, id string) unstructured.Unstructured {
		u := unstructured.Unstructured{Object: map[string]any{}}
		u.SetName(name)
		u.SetAnnotations(map[string]string{clusterv1.AnnotationJoinedBy: id})
		return u
	}
	token.Count([]unstructured.Unstructured{request("new", "JTI=1", "x"), request("asks", "JTI=1", ""),
		request("other", "JTI=2", "x")},
		[]unstructured.Unstructured{noted("old", "abc123"), noted("elsewhere", "abc12"), noted("new", "abc123")})
	require.Equal(t, 2, token.Uses)
	require.Equal(t, []string{"new", "old"}, token.Joined)
}
