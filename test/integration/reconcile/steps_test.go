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

// target names a ConfigMap of the scene, as it is on the server.
func (s *scene) target(t *testing.T, name string) reconcile.Target {
	t.Helper()
	u, err := s.client.Resource(configMaps).Namespace(s.namespace).Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	return reconcile.Target{Resource: configMaps, Namespace: s.namespace, Name: name, UID: u.GetUID(), Version: u.GetResourceVersion()}
}

func setTo(value string) map[string]any { return map[string]any{"data": map[string]any{"k": value}} }

func TestStepsAreMadeInTheirOrderAndKnowWhatTheyLeft(t *testing.T) {
	s := newScene(t)
	_, err := s.executor.Execute(t.Context(), s.service, reconcile.Plan{Apply: []reconcile.Apply{{Object: s.configMap("old", "1")}}})
	require.NoError(t, err)
	var told []string
	s.executor.OnStep(func(at reconcile.Target, live *unstructured.Unstructured) {
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
	_, err = s.executor.Execute(t.Context(), s.service, reconcile.Plan{Object: want, Steps: []reconcile.Step{
		{Target: fresh, Create: s.configMap("new", "0")},
		{Target: fresh, Patch: setTo("1")},
		{Target: s.target(t, "old"), Patch: setTo("2")},
		{Target: fresh, Patch: setTo("3")},
		{Target: s.target(t, "old")},
	}, Events: []reconcile.Event{{Type: corev1.EventTypeNormal, Reason: "Done", Message: "m", Related: s.configMap("new", "")}}})
	require.NoError(t, err)
	require.Empty(t, cmp.Diff([]string{"POST /configmaps", "PATCH /configmaps/new", "PATCH /configmaps/old", "PATCH /configmaps/new", "DELETE /configmaps/old",
		"PATCH /services/web/status", "POST /events"}, s.newWrites(start)))
	require.Equal(t, []string{"new=0", "new=1", "old=2", "new=3", "old=gone"}, told)
	list := s.told(t)
	require.Len(t, list, 1)
	require.Equal(t, map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "namespace": s.namespace, "name": "new"}, list[0]["related"])
}

// TestAStepThatFailsEndsThePlan covers what a step may find: an object that has
// changed, is another one, or is gone. Each is a conflict, after which nothing is
// written.
func TestAStepThatFailsEndsThePlan(t *testing.T) {
	for what, first := range map[string]func(t *testing.T, s *scene) reconcile.Step{
		"changed": func(t *testing.T, s *scene) reconcile.Step {
			at := s.target(t, "there")
			at.Version = "1"
			return reconcile.Step{Target: at, Patch: setTo("2")}
		},
		"another one": func(t *testing.T, s *scene) reconcile.Step {
			at := s.target(t, "there")
			at.UID, at.Version = types.UID("00000000-0000-0000-0000-000000000000"), "1"
			return reconcile.Step{Target: at, Patch: setTo("2")}
		},
		"gone": func(_ *testing.T, s *scene) reconcile.Step {
			return reconcile.Step{Target: reconcile.Target{Resource: configMaps, Namespace: s.namespace, Name: "never", UID: "u", Version: "1"}, Patch: setTo("2")}
		},
		"changed since it was to be deleted": func(t *testing.T, s *scene) reconcile.Step {
			at := s.target(t, "there")
			at.Version = "1"
			return reconcile.Step{Target: at}
		},
	} {
		t.Run(what, func(t *testing.T) {
			s := newScene(t)
			_, err := s.executor.Execute(t.Context(), s.service, reconcile.Plan{Apply: []reconcile.Apply{{Object: s.configMap("there", "1")}}})
			require.NoError(t, err)
			failing := first(t, s)
			start := len(s.writes.Seen())
			want := s.service.DeepCopy()
			want.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Fine", LastTransitionTime: metav1.Now()}}
			result, err := s.executor.Execute(t.Context(), s.service, reconcile.Plan{
				Object: want, Steps: []reconcile.Step{failing, {Target: reconcile.Target{Resource: configMaps, Namespace: s.namespace, Name: "next"}, Create: s.configMap("next", "1")}},
			})
			require.NoError(t, err, "a conflict is no error")
			require.Positive(t, result.RequeueAfter)
			require.Len(t, s.newWrites(start), 1, "nothing after the step that failed")
		})
	}
}

func TestAStepThatIsRefusedIsShown(t *testing.T) {
	s := newScene(t)
	want := s.service.DeepCopy()
	_, err := s.executor.Execute(t.Context(), s.service, reconcile.Plan{Apply: []reconcile.Apply{{Object: s.configMap("there", "1")}}})
	require.NoError(t, err)
	bad := s.configMap("there", "2")
	_, err = s.executor.Execute(t.Context(), s.service, reconcile.Plan{
		Object:    want,
		Steps:     []reconcile.Step{{Target: reconcile.Target{Resource: configMaps, Namespace: s.namespace, Name: bad.Name}, Create: bad}},
		Apply:     []reconcile.Apply{{Object: s.configMap("after", "1")}},
		OnFailure: &metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse, Reason: "NotWritten", Message: "Because:"},
	})
	require.ErrorContains(t, err, "creating configmaps")
	s.refresh(t)
	require.Equal(t, "NotWritten", s.service.Status.Conditions[0].Reason)
	require.Contains(t, s.service.Status.Conditions[0].Message, "Because: creating configmaps")
	_, err = s.client.Resource(configMaps).Namespace(s.namespace).Get(t.Context(), "after", metav1.GetOptions{})
	require.Error(t, err, "nothing is applied after a step that failed")
}

// TestPatchesAreTriedEachForItself has one that is stale and one of an object that
// is gone among others: the loop comes again for them, and the status is written.
func TestPatchesAreTriedEachForItself(t *testing.T) {
	s := newScene(t)
	for _, name := range []string{"a", "b", "c"} {
		_, err := s.executor.Execute(t.Context(), s.service, reconcile.Plan{Apply: []reconcile.Apply{{Object: s.configMap(name, "1")}}})
		require.NoError(t, err)
	}
	stale, gone := s.target(t, "b"), s.target(t, "a")
	stale.Version, gone.Name = "1", "never"
	start := len(s.writes.Seen())
	want := s.service.DeepCopy()
	want.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Fine", LastTransitionTime: metav1.Now()}}
	result, err := s.executor.Execute(t.Context(), s.service, reconcile.Plan{Object: want, Patches: []reconcile.Step{
		{Target: stale, Patch: setTo("2")}, {Target: gone, Patch: setTo("2")}, {Target: s.target(t, "a"), Patch: setTo("2")}, {Target: s.target(t, "c"), Patch: setTo("2")},
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
