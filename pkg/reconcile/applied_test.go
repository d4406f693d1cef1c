// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestWhatWasDeletedIsForgotten(t *testing.T) {
	// A server that has lost all objects.
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	client, err := dynamic.NewForConfig(&rest.Config{Host: server.URL})
	require.NoError(t, err)
	e := NewExecutor(client, "test", clocktesting.NewFakePassiveClock(metav1.Now().Time))
	configMaps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	at := Target{Resource: configMaps, Namespace: "n", Name: "a"}
	e.applied.remember(at, []byte("intent"), "7")
	require.True(t, e.applied.unchanged(at, []byte("intent"), "7"))
	object := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "a"}}
	_, err = e.Execute(t.Context(), object, Plan{Writes: []Write{Remove{Target: at}}})
	require.NoError(t, err)
	require.Empty(t, e.applied.last)
}
