// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
)

// finite creates a work with a delete option.
func (s *scene) finite(t *testing.T, name, option, labels string) {
	t.Helper()
	u := decoded(t, fmt.Sprintf(`{"apiVersion":"work.open-cluster-management.io/v1","kind":"ManifestWork","metadata":{"name":%q,"labels":{%s}},
		"spec":{"deleteOption":{%s},"workload":{"manifests":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"x"}}]}}}`, name,
		labels,
		option))
	reached(t, func() error {
		_, err := s.dyn.Resource(works).Namespace("jobs").Create(context.Background(), u, metav1.CreateOptions{})
		return err
	})
}

// finish reports a work as complete at a generation, as an agent does.
func (s *scene) finish(t *testing.T, name string, status metav1.ConditionStatus, generation int64, at time.Time) {
	t.Helper()
	body, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []metav1.Condition{{
		Type:               "Complete",
		Status:             status,
		Reason:             "ConditionRulesAggregated",
		ObservedGeneration: generation,
		LastTransitionTime: metav1.NewTime(at),
	}}}})
	require.NoError(t, err)
	_, err = s.dyn.Resource(works).Namespace("jobs").Patch(context.Background(), name, types.MergePatchType, body, metav1.PatchOptions{}, "status")
	require.NoError(t, err)
}

func (s *scene) finiteGone(t *testing.T, name string) bool {
	t.Helper()
	_, err := s.dyn.Resource(works).Namespace("jobs").Get(context.Background(), name, metav1.GetOptions{})
	require.True(t, err == nil || apierrors.IsNotFound(err), "%v", err)
	return err != nil
}

// gates sets the feature gates of the work part.
func (s *scene) gates(t *testing.T, names ...string) {
	t.Helper()
	list := []map[string]string{}
	for _, name := range names {
		list = append(list, map[string]string{"feature": name, "mode": "Enable"})
	}
	body, err := json.Marshal(map[string]any{"spec": map[string]any{"workConfiguration": map[string]any{"featureGates": list}}})
	require.NoError(t, err)
	_, err = s.dyn.Resource(managers).Patch(context.Background(), hub.Name, types.MergePatchType, body, metav1.PatchOptions{})
	require.NoError(t, err)
}

// loopNames returns the names of the loops with which the controllers started last.
func (s *scene) loopNames(t *testing.T) string {
	t.Helper()
	pods, err := s.kube.CoreV1().Pods(hub.Namespace).List(context.Background(), metav1.ListOptions{})
	require.NoError(t, err)
	last := ""
	for _, pod := range pods.Items {
		text, err := s.kube.CoreV1().Pods(hub.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(context.Background())
		require.NoError(t, err)
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, "Controllers start") {
				last = line
			}
		}
	}
	return last
}

func TestCompleteWorksGoWhenTheirTimeIsOver(t *testing.T) {
	t.Parallel()
	s := ownHub(t)
	_, err := s.kube.CoreV1().Namespaces().Create(t.Context(), namespace("jobs"), metav1.CreateOptions{})
	require.NoError(t, err)
	require.NotContains(t, s.loopNames(t), "work.gc", "without the gate there is no loop, and no watch")
	const ttl = `"ttlSecondsAfterFinished":`
	past := time.Now().Add(-time.Hour)
	s.finite(t, "early", ttl+"0", "")
	s.finish(t, "early", metav1.ConditionTrue, 1, past)
	s.finite(t, "endless", `"propagationPolicy":"Foreground"`, "")
	s.finish(t, "endless", metav1.ConditionTrue, 1, past)
	s.finite(t, "running", ttl+"0", "")
	s.finish(t, "running", metav1.ConditionFalse, 1, past)
	s.finite(t, "owned", ttl+"0", `"work.open-cluster-management.io/manifestworkreplicaset":"apps.web"`)
	s.finish(t, "owned", metav1.ConditionTrue, 1, past)
	s.finite(t, "edited", ttl+"1000", "")
	s.finish(t, "edited", metav1.ConditionTrue, 1, past.Add(time.Hour))
	s.finite(t, "negative", ttl+"-7", "")
	s.finite(t, "huge", ttl+"9223372036854775807", "")
	s.finish(t, "huge", metav1.ConditionTrue, 1, past)

	s.gates(t, "CleanUpCompletedManifestWork")
	soon(t, func() bool { return s.finiteGone(t, "early") })
	require.Contains(t, s.loopNames(t), "work.gc") // it is logged before the loops start

	began := time.Now().Truncate(time.Second)
	s.finite(t, "soon", ttl+"3", "")
	s.finish(t, "soon", metav1.ConditionTrue, 1, began)
	// A work that is edited after it was complete has not run yet, although its time is
	// over.
	_, err = s.dyn.Resource(works).Namespace("jobs").Patch(
		t.Context(), "edited", types.MergePatchType,
		[]byte(`{"spec":{"deleteOption":{"ttlSecondsAfterFinished":0}}}`), metav1.PatchOptions{},
	)
	require.NoError(t, err)
	s.finish(t, "negative", metav1.ConditionTrue, 1, past)
	soon(t, func() bool { return s.finiteGone(t, "negative") })
	soon(t, func() bool { return s.finiteGone(t, "soon") })
	require.GreaterOrEqual(t, time.Since(began), 3*time.Second, "not before its time")
	for _, name := range []string{"endless", "running", "owned", "edited", "huge"} {
		require.False(t, s.finiteGone(t, name), "%s stays", name)
	}
	s.finish(t, "edited", metav1.ConditionTrue, 2, past)
	soon(t, func() bool { return s.finiteGone(t, "edited") })

	// Each Event is written after the deletion, the last one perhaps only now.
	told := map[string]int{}
	soon(t, func() bool {
		events, err := s.kube.EventsV1().Events("jobs").List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		clear(told)
		for _, e := range events.Items {
			if e.Reason == "TTLExpired" {
				told[e.Regarding.Name]++
			}
		}
		return maps.Equal(told, map[string]int{"early": 1, "soon": 1, "negative": 1, "edited": 1})
	}, "one Event for each: %v", &told)
}
