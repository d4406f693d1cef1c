// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// target returns the current ConfigMap of the scene as a target.
func (s *scene) target(t *testing.T, name string) reconcile.Target {
	t.Helper()
	u, err := s.client.Resource(configMaps).Namespace(s.namespace).Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	return reconcile.Target{Resource: configMaps, Namespace: s.namespace, Name: name, UID: u.GetUID(), Version: u.GetResourceVersion()}
}

func (s *scene) remove(name string) reconcile.Remove {
	return reconcile.Remove{Target: reconcile.Target{Resource: configMaps, Namespace: s.namespace, Name: name}}
}

func setTo(value string) map[string]any { return map[string]any{"data": map[string]any{"k": value}} }

func TestWritesAreMadeInTheirOrderAndKnowWhatTheyLeft(t *testing.T) {
	s := newScene(t)
	_, err := s.executor.Execute(t.Context(), s.service, reconcile.Plan{Writes: []reconcile.Write{reconcile.Apply{Object: s.configMap("old", "1")}}})
	require.NoError(t, err)
	var told []string
	s.executor.OnWrite(func(at reconcile.Target, live *unstructured.Unstructured) {
		value := "gone"
		if live != nil {
			value, _, _ = unstructured.NestedString(live.Object, "data", "k")
		}
		told = append(told, at.Name+"="+value)
	})
	start := len(s.writes.Seen())
	fresh := reconcile.Target{Resource: configMaps, Namespace: s.namespace, Name: "new"}
	want := s.service.DeepCopy()
	want.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Fine", LastTransitionTime: metav1.Now()}}
	_, err = s.executor.Execute(t.Context(), s.service, reconcile.Plan{Object: want, Order: reconcile.Strict, Writes: []reconcile.Write{
		reconcile.Create{Object: s.configMap("new", "0")},
		reconcile.Patch{Target: fresh, Body: setTo("1")},
		reconcile.Patch{Target: s.target(t, "old"), Body: setTo("2")},
		reconcile.Patch{Target: fresh, Body: setTo("3")},
		reconcile.Remove{Target: s.target(t, "old")},
	}, Events: []reconcile.Event{{Type: corev1.EventTypeNormal, Reason: "Done", Message: "m", Related: s.configMap("new", "")}}})
	require.NoError(t, err)
	require.Empty(t, cmp.Diff([]string{"POST /configmaps", "PATCH /configmaps/new", "PATCH /configmaps/old", "PATCH /configmaps/new", "DELETE /configmaps/old",
		"PATCH /services/web/status", "POST /events"}, s.newWrites(start)))
	require.Equal(t, []string{"new=0", "new=1", "old=2", "new=3", "old=gone"}, told)
	list := s.executorEvents(t)
	require.Len(t, list, 1)
	require.Equal(t, map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "namespace": s.namespace, "name": "new"}, list[0]["related"])
}

// TestAStrictWriteThatFailsEndsThePlan covers what a write may find: an object that has
// changed, was replaced, or is gone. Each is a conflict, after which nothing is written.
func TestAStrictWriteThatFailsEndsThePlan(t *testing.T) {
	for what, first := range map[string]func(t *testing.T, s *scene) reconcile.Write{
		"changed": func(t *testing.T, s *scene) reconcile.Write {
			at := s.target(t, "there")
			at.Version = "1"
			return reconcile.Patch{Target: at, Body: setTo("2")}
		},
		"another one": func(t *testing.T, s *scene) reconcile.Write {
			at := s.target(t, "there")
			at.UID, at.Version = types.UID("00000000-0000-0000-0000-000000000000"), "1"
			return reconcile.Patch{Target: at, Body: setTo("2")}
		},
		"gone": func(_ *testing.T, s *scene) reconcile.Write {
			return reconcile.Patch{Target: reconcile.Target{Resource: configMaps, Namespace: s.namespace, Name: "never", UID: "u", Version: "1"}, Body: setTo("2")}
		},
		"changed since it was to be deleted": func(t *testing.T, s *scene) reconcile.Write {
			at := s.target(t, "there")
			at.Version = "1"
			return reconcile.Remove{Target: at}
		},
	} {
		t.Run(what, func(t *testing.T) {
			s := newScene(t)
			_, err := s.executor.Execute(t.Context(), s.service, reconcile.Plan{Writes: []reconcile.Write{reconcile.Apply{Object: s.configMap("there", "1")}}})
			require.NoError(t, err)
			failing := first(t, s)
			start := len(s.writes.Seen())
			want := s.service.DeepCopy()
			want.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Fine", LastTransitionTime: metav1.Now()}}
			result, err := s.executor.Execute(t.Context(), s.service, reconcile.Plan{
				Object: want,
				Order:  reconcile.Strict,
				Writes: []reconcile.Write{failing, reconcile.Create{Object: s.configMap("next", "1")}},
			})
			require.NoError(t, err, "a conflict is no error")
			require.Positive(t, result.RequeueAfter)
			require.Len(t, s.newWrites(start), 1, "nothing after the write that failed")
		})
	}
}

func TestAStrictWriteThatIsRefusedIsShown(t *testing.T) {
	s := newScene(t)
	want := s.service.DeepCopy()
	_, err := s.executor.Execute(t.Context(), s.service, reconcile.Plan{Writes: []reconcile.Write{reconcile.Apply{Object: s.configMap("there", "1")}}})
	require.NoError(t, err)
	bad := s.configMap("there", "2")
	_, err = s.executor.Execute(t.Context(), s.service, reconcile.Plan{
		Object:    want,
		Order:     reconcile.Strict,
		Writes:    []reconcile.Write{reconcile.Create{Object: bad}, reconcile.Apply{Object: s.configMap("after", "1")}},
		OnFailure: &metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse, Reason: "NotWritten", Message: "Because:"},
	})
	require.ErrorContains(t, err, "creating configmaps")
	s.refresh(t)
	require.Equal(t, "NotWritten", s.service.Status.Conditions[0].Reason)
	require.Contains(t, s.service.Status.Conditions[0].Message, "Because: creating configmaps")
	_, err = s.client.Resource(configMaps).Namespace(s.namespace).Get(t.Context(), "after", metav1.GetOptions{})
	require.Error(t, err, "nothing is applied after a write that failed")
}

// TestParallelWritesAreTriedEachForItself has a stale write and one to a missing object
// among others: the loop retries them, and the status is written.
func TestParallelWritesAreTriedEachForItself(t *testing.T) {
	s := newScene(t)
	for _, name := range []string{"a", "b", "c"} {
		_, err := s.executor.Execute(t.Context(), s.service, reconcile.Plan{Writes: []reconcile.Write{reconcile.Apply{Object: s.configMap(name, "1")}}})
		require.NoError(t, err)
	}
	stale, gone := s.target(t, "b"), s.target(t, "a")
	stale.Version, gone.Name = "1", "never"
	start := len(s.writes.Seen())
	want := s.service.DeepCopy()
	want.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Fine", LastTransitionTime: metav1.Now()}}
	result, err := s.executor.Execute(t.Context(), s.service, reconcile.Plan{Object: want, Order: reconcile.Parallel, Writes: []reconcile.Write{
		reconcile.Patch{Target: stale, Body: setTo("2")},
		reconcile.Patch{Target: gone, Body: setTo("2")},
		reconcile.Patch{Target: s.target(t, "a"), Body: setTo("2")},
		reconcile.Patch{Target: s.target(t, "c"), Body: setTo("2")},
	}})
	require.NoError(t, err)
	require.NotZero(t, result.RequeueAfter)
	writes := s.newWrites(start)
	require.Len(t, writes, 5)
	require.Equal(t, "PATCH /services/web/status", writes[4])
	for name, value := range map[string]string{"a": "2", "b": "1", "c": "2"} {
		u, err := s.client.Resource(configMaps).Namespace(s.namespace).Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err)
		got, _, _ := unstructured.NestedString(u.Object, "data", "k")
		require.Equal(t, value, got, name)
	}
}

// TestChainsDependOnNothingButThemselves sends chains of writes: each write follows the one before
// to the same object, and none of its own chain follows one that failed. Conflicts alone end the plan
// before the status, for another pass.
func TestChainsDependOnNothingButThemselves(t *testing.T) {
	s := newScene(t)
	for _, name := range []string{"a", "b"} {
		_, err := s.executor.Execute(t.Context(), s.service, reconcile.Plan{Writes: []reconcile.Write{reconcile.Apply{Object: s.configMap(name, "1")}}})
		require.NoError(t, err)
	}
	stale := s.target(t, "b")
	stale.Version = "1"
	start := len(s.writes.Seen())
	want := s.service.DeepCopy()
	want.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Fine", LastTransitionTime: metav1.Now()}}
	created := reconcile.Target{Resource: configMaps, Namespace: s.namespace, Name: "c"}
	result, err := s.executor.Execute(t.Context(), s.service, reconcile.Plan{Object: want, Order: reconcile.Chains, Writes: []reconcile.Write{
		reconcile.Patch{Target: stale, Body: setTo("2")},
		reconcile.Create{Object: s.configMap("c", "1")},
		reconcile.Patch{Target: s.target(t, "a"), Body: setTo("2")},
		reconcile.Patch{Target: stale, Body: setTo("3")},
		reconcile.Patch{Target: s.target(t, "a"), Body: setTo("3")},
		reconcile.Patch{Target: created, Body: setTo("2")},
	}})
	require.NoError(t, err)
	require.NotZero(t, result.RequeueAfter)
	require.Len(t, s.newWrites(start), 5, "neither the second write to b nor the status")
	for name, value := range map[string]string{"a": "3", "b": "1", "c": "2"} {
		u, err := s.client.Resource(configMaps).Namespace(s.namespace).Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err)
		got, _, _ := unstructured.NestedString(u.Object, "data", "k")
		require.Equal(t, value, got, name)
	}
}

// TestAnObjectIsReplacedOnlyOnceItIsGone writes an object that an earlier write could not
// remove: it is not touched, and unrelated objects are written.
func TestAnObjectIsReplacedOnlyOnceItIsGone(t *testing.T) {
	s := newScene(t)
	_, err := s.executor.Execute(t.Context(), s.service, reconcile.Plan{Writes: []reconcile.Write{reconcile.Apply{Object: s.configMap("a", "1")}}})
	require.NoError(t, err)
	changed := s.target(t, "a")
	changed.Version = "1"
	replace := func(at reconcile.Target) reconcile.Result {
		result, err := s.executor.Execute(t.Context(), s.service, reconcile.Plan{Writes: []reconcile.Write{
			reconcile.Remove{
				Target: at,
			}, reconcile.Create{
				Object: s.configMap("a", "2"),
			}, reconcile.Create{
				Object:  s.configMap("b", "2"),
				Lenient: true,
			},
		}})
		require.NoError(t, err)
		return result
	}
	start := len(s.writes.Seen())
	require.Positive(t, replace(changed).RequeueAfter)
	require.Equal(t, []string{"DELETE /configmaps/a", "POST /configmaps"}, s.newWrites(start))
	require.Zero(t, replace(s.target(t, "a")).RequeueAfter)
	u, err := s.client.Resource(configMaps).Namespace(s.namespace).Get(t.Context(), "a", metav1.GetOptions{})
	require.NoError(t, err)
	got, _, _ := unstructured.NestedString(u.Object, "data", "k")
	require.Equal(t, "2", got)
}
