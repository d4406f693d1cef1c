// SPDX-License-Identifier: Apache-2.0

package scene

import (
	"context"
	"fmt"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

// works is the resource of ManifestWorks.
var works = workv1.GroupVersion.WithResource(workv1.ResourceManifestWorks)

// Delivered calls do, and returns how long it takes from then on until this many clusters
// have a work that matches a label selector and whose first manifest, a ConfigMap, has a
// value.
func (s *Scene) Delivered(selector string, clusters int, value string, do func()) time.Duration {
	s.t.Helper()
	have := map[string]bool{}
	return s.Until(s.Dyn.Resource(works), selector, do, func(u *unstructured.Unstructured) bool {
		manifests, _, _ := unstructured.NestedSlice(u.Object, "spec", "workload", "manifests")
		first, _ := manifests[0].(map[string]any)
		if data, _, _ := unstructured.NestedStringMap(first, "data"); data["value"] == value {
			have[u.GetNamespace()] = true
		}
		return len(have) >= clusters
	})
}

// Until watches objects, calls do, and waits until holds accepts an object, or all
// objects of one list; it returns how long that takes.
func (s *Scene) Until(api dynamic.ResourceInterface, selector string, do func(), holds func(*unstructured.Unstructured) bool) time.Duration {
	s.t.Helper()
	list, err := api.List(s.t.Context(), metav1.ListOptions{Limit: 1})
	require.NoError(s.t, err)
	w, err := api.Watch(s.t.Context(), metav1.ListOptions{ResourceVersion: list.GetResourceVersion(), LabelSelector: selector})
	require.NoError(s.t, err)
	defer func() { w.Stop() }()
	began := time.Now()
	do()
	for deadline := time.After(Patience); ; {
		select {
		case event := <-w.ResultChan():
			if u, ok := event.Object.(*unstructured.Unstructured); ok {
				if holds(u) {
					return time.Since(began)
				}
				continue
			}
			// The API server ends the watch of a slow reader.
			list, err := api.List(s.t.Context(), metav1.ListOptions{LabelSelector: selector})
			require.NoError(s.t, err)
			for i := range list.Items {
				if holds(&list.Items[i]) {
					return time.Since(began)
				}
			}
			w.Stop()
			w, err = api.Watch(s.t.Context(), metav1.ListOptions{ResourceVersion: list.GetResourceVersion(), LabelSelector: selector})
			require.NoError(s.t, err)
		case <-deadline:
			require.FailNow(s.t, "timed out")
		}
	}
}

// Report marks every work of a label selector as applied and available, as the agents of
// the clusters do; there must be one for each cluster.
func (s *Scene) Report(selector string, clusters int) {
	s.t.Helper()
	list, err := s.Dyn.Resource(works).List(s.t.Context(), metav1.ListOptions{LabelSelector: selector})
	require.NoError(s.t, err)
	require.Len(s.t, list.Items, clusters, "one work a cluster")
	stamp := time.Now().UTC().Format(time.RFC3339)
	s.Each(0, clusters, func(ctx context.Context, i int) error {
		u := &list.Items[i]
		body := fmt.Appendf(nil, `{"status":{"conditions":[
			{"type":"Applied","status":"True","reason":"AppliedManifestWorkComplete","message":"Apply manifest work complete",
			"lastTransitionTime":%[1]q,"observedGeneration":%[2]d},
			{"type":"Available","status":"True","reason":"ResourcesAvailable","message":"All resources are available",
			"lastTransitionTime":%[1]q,"observedGeneration":%[2]d}]}}`,
			stamp, u.GetGeneration())
		_, err := s.Dyn.Resource(works).Namespace(u.GetNamespace()).Patch(ctx, u.GetName(), types.MergePatchType, body, metav1.PatchOptions{}, "status")
		return err
	})
}
