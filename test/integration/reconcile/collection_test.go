// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile/watch"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
)

// patience bounds every wait for what takes milliseconds on an idle machine.
const patience = 2 * time.Minute

// run starts the collection and returns the keys that it reports.
func run[T any](t *testing.T, c *watch.Collection[T]) <-chan reconcile.Key {
	t.Helper()
	keys := make(chan reconcile.Key, 10000)
	c.OnChange(func(k reconcile.Key) { keys <- k })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	return keys
}

func next(t *testing.T, keys <-chan reconcile.Key) string {
	t.Helper()
	select {
	case k := <-keys:
		return k.Name
	case <-time.After(patience):
		require.FailNow(t, "no change was told")
		return ""
	}
}

// value keeps the one value of the test's ConfigMaps, and drops all other objects.
func value(u *unstructured.Unstructured) (string, bool) {
	v, _, _ := unstructured.NestedString(u.Object, "data", "k")
	return v, v != ""
}

func TestACollectionFollowsTheAPI(t *testing.T) {
	s := newScene(t)
	api := s.client.Resource(configMaps).Namespace(s.namespace)
	create := func(name, v string) {
		u, err := typed.ToUnstructured(&corev1.ConfigMap{TypeMeta: kind("ConfigMap"), ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"k": v}})
		require.NoError(t, err)
		_, err = api.Create(t.Context(), u, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	update := func(name, v string) {
		u, err := api.Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err)
		require.NoError(t, unstructured.SetNestedField(u.Object, v, "data", "k"))
		_, err = api.Update(t.Context(), u, metav1.UpdateOptions{})
		require.NoError(t, err)
	}
	create("first", "1")
	c := watch.New(watch.Options[string]{Client: s.client, Resource: configMaps, Namespace: s.namespace, Keep: value})
	keys := run(t, c)
	require.NoError(t, c.WaitSynced(t.Context()))
	require.Equal(t, "first", next(t, keys))
	require.Equal(t, []string{"1"}, c.List(), "the cluster's own ConfigMaps hold no value of ours")

	create("second", "2")
	require.Equal(t, "second", next(t, keys))
	update("second", "3")
	require.Equal(t, "second", next(t, keys))
	got, ok := c.Get(reconcile.Key{Namespace: s.namespace, Name: "second"})
	require.True(t, ok)
	require.Equal(t, "3", got)

	update("second", "")
	require.Equal(t, "second", next(t, keys), "what is no longer kept counts as removed")
	require.Equal(t, 1, c.Len())
	require.NoError(t, api.Delete(t.Context(), "first", metav1.DeleteOptions{}))
	require.Equal(t, "first", next(t, keys))
	require.Zero(t, c.Len())
}

func TestACollectionSaysWhyItCannotBeRead(t *testing.T) {
	cluster := harness.Shared(t, "hub")
	client, err := dynamic.NewForConfig(cluster.As(t, "default", "nobody"))
	require.NoError(t, err)
	c := watch.New(watch.Options[string]{Client: client, Resource: configMaps, Namespace: "kube-system", Keep: value})
	run(t, c)
	require.Eventually(t, func() bool { return c.Err() != nil }, patience, 10*time.Millisecond)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err = c.WaitSynced(ctx)
	require.ErrorIs(t, err, context.Canceled)
	// The first request is for a stream of all objects, which is a watch.
	require.Regexp(t, `"system:serviceaccount:default:nobody" cannot (watch|list) resource "configmaps"`, err.Error())
}

func TestACollectionIsReadWhole(t *testing.T) {
	s := newScene(t)
	const many = 1203 // more than two pages
	for i := range many {
		_, err := s.executor.Execute(t.Context(), s.service, reconcile.Plan{Writes: []reconcile.Write{
			reconcile.Apply{Object: s.configMap(fmt.Sprintf("n%04d", i), "1")},
		}})
		require.NoError(t, err)
	}
	c := watch.New(watch.Options[string]{Client: s.client, Resource: configMaps, Namespace: s.namespace, Keep: value})
	run(t, c)
	require.NoError(t, c.WaitSynced(t.Context()))
	require.Equal(t, many, c.Len())
}
