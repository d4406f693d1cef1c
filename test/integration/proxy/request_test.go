// SPDX-License-Identifier: Apache-2.0

package proxy_test

import (
	"encoding/base64"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

func b64(raw []byte) string { return base64.StdEncoding.EncodeToString(raw) }

func decode(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	require.NoError(t, u.UnmarshalJSON([]byte(text)))
	return u
}

func TestAUserOfTheHubWorksOnAManagedCluster(t *testing.T) {
	s := start(t)
	s.join(t, "plain")
	s.connect(t, "plain")
	s.allow(t, "User", "ada", "plain")
	grant(t, s.spoke.Dynamic(t), "ada", "edit", "User", "ada")
	maps := s.on(t, "plain", "ada").CoreV1().ConfigMaps("default")
	var created *corev1.ConfigMap
	soon(t, func() (err error) {
		created, err = maps.Create(t.Context(), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: "notes"}, Data: map[string]string{"a": "1"},
		}, metav1.CreateOptions{})
		return err
	})
	created.Data["a"] = "2"
	_, err := maps.Update(t.Context(), created, metav1.UpdateOptions{})
	require.NoError(t, err)
	_, err = maps.Update(t.Context(), created, metav1.UpdateOptions{})
	require.True(t, apierrors.IsConflict(err), "the managed cluster's own answer: %v", err)
	patched, err := maps.Patch(t.Context(), "notes", types.MergePatchType, []byte(`{"data":{"b":"3"}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"a": "2", "b": "3"}, patched.Data)
	found, err := maps.List(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=notes"})
	require.NoError(t, err)
	require.Len(t, found.Items, 1)
	require.NoError(t, maps.Delete(t.Context(), "notes", metav1.DeleteOptions{}))
	_, err = maps.Get(t.Context(), "notes", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
}
