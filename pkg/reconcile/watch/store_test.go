// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

func object(name, value string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": name}, "value": value}}
}

func TestTheFirstListIsHeldReduced(t *testing.T) {
	c := New(Options[string]{Keep: func(u *unstructured.Unstructured) (string, bool) {
		v, _, _ := unstructured.NestedString(u.Object, "value")
		return v, v != ""
	}})
	var told []string
	c.OnChange(func(k reconcile.Key) { told = append(told, k.Name) })
	s := (*store)(c.collection)

	ours, err := s.Transformer()(object("ours", "1"))
	require.NoError(t, err)
	require.Equal(t, &kept{key: reconcile.Key{Name: "ours"}, item: "1", keep: true}, ours)
	foreign, err := s.Transformer()(object("foreign", ""))
	require.NoError(t, err)
	require.Equal(t, &kept{key: reconcile.Key{Name: "foreign"}}, foreign)
	again, err := s.Transformer()(ours)
	require.NoError(t, err)
	require.Same(t, ours, again)
	_, err = s.Transformer()("text")
	require.ErrorContains(t, err, "not an object of the API")

	require.NoError(t, s.Replace([]any{ours, foreign, object("plain", "2")}, "1"))
	require.ElementsMatch(t, []string{"1", "2"}, c.List())
	require.NoError(t, s.Replace([]any{foreign, object("plain", "3")}, "2"))
	require.Equal(t, []string{"3"}, c.List())
	require.Equal(t, []string{"ours", "plain", "plain", "ours"}, told, "a removed object is reported, an ignored one is not")
}

func TestWhatIsStoredAsBeforeIsNotTold(t *testing.T) {
	told := 0
	c := New(Options[string]{
		Keep: func(u *unstructured.Unstructured) (string, bool) {
			v, _, _ := unstructured.NestedString(u.Object, "value")
			return v, true
		},
		Same: func(before, now string) bool { return before == now },
	})
	c.OnChange(func(reconcile.Key) { told++ })
	s := (*store)(c.collection)
	require.NoError(t, s.Add(object("a", "1")))
	require.NoError(t, s.Update(object("a", "1")))
	require.NoError(t, s.Replace([]any{object("a", "1")}, "2"))
	require.Equal(t, 1, told)
	require.NoError(t, s.Update(object("a", "2")))
	require.NoError(t, s.Delete(object("a", "2")))
	require.Equal(t, 3, told)
}
