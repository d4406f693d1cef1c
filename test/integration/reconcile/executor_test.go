// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness"
	"github.com/kubectl-ocm/kubectl-ocm/test/harness/faults"
)

const finalizer = "example.com/hold"

var (
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	services   = schema.GroupVersionResource{Version: "v1", Resource: "services"}
	namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	events     = schema.GroupVersionResource{Group: "events.k8s.io", Version: "v1", Resource: "events"}
)

// scene is a namespace with one Service, which the test reconciles.
type scene struct {
	client    dynamic.Interface
	executor  *reconcile.Executor
	writes    *faults.Process
	namespace string
	service   *corev1.Service
}

func newScene(t *testing.T) *scene {
	t.Helper()
	cluster := harness.Shared(t, "hub")
	config, writes := faults.Count(cluster.Config)
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	admin := cluster.Dynamic(t)
	ns, err := typed.ToUnstructured(&corev1.Namespace{TypeMeta: kind("Namespace"), ObjectMeta: metav1.ObjectMeta{GenerateName: "scene-"}})
	require.NoError(t, err)
	ns, err = admin.Resource(namespaces).Create(t.Context(), ns, metav1.CreateOptions{})
	require.NoError(t, err)
	svc, err := typed.ToUnstructured(&corev1.Service{TypeMeta: kind("Service"), ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}})
	require.NoError(t, err)
	_, err = admin.Resource(services).Namespace(ns.GetName()).Create(t.Context(), svc, metav1.CreateOptions{})
	require.NoError(t, err)
	s := &scene{client: client, writes: writes, namespace: ns.GetName(), executor: reconcile.NewExecutor(client, "test.executor", clock.RealClock{})}
	s.refresh(t)
	return s
}

func kind(k string) metav1.TypeMeta { return metav1.TypeMeta{APIVersion: "v1", Kind: k} }

// refresh reads the Service again, as a cache would.
func (s *scene) refresh(t *testing.T) {
	t.Helper()
	svc, err := typed.Get[corev1.Service](t.Context(), s.client, services, s.namespace, "web")
	require.NoError(t, err)
	s.service = svc
}

func (s *scene) configMap(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{TypeMeta: kind("ConfigMap"), ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}, Data: map[string]string{"k": value}}
}

// newWrites returns the writes since the last call, without the namespace's path.
func (s *scene) newWrites(skip int) []string {
	var out []string
	for _, w := range s.writes.Seen()[skip:] {
		w = strings.ReplaceAll(w, "/namespaces/"+s.namespace, "")
		out = append(out, strings.NewReplacer("/apis/events.k8s.io/v1", "", "/api/v1", "").Replace(w))
	}
	return out
}

// executorEvents returns the Events of the executor; kube-apiserver writes Events about
// Services too.
func (s *scene) executorEvents(t *testing.T) (out []map[string]any) {
	t.Helper()
	list, err := s.client.Resource(events).Namespace(s.namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for _, e := range list.Items {
		if e.Object["reportingInstance"] == s.executor.Manager() {
			out = append(out, e.Object)
		}
	}
	return out
}

func TestAPlanIsCarriedOutInOrder(t *testing.T) {
	s := newScene(t)
	_, err := s.executor.Execute(t.Context(), s.service, reconcile.Plan{Writes: []reconcile.Write{reconcile.Apply{Object: s.configMap("old", "1")}}})
	require.NoError(t, err)
	start := len(s.writes.Seen())

	want := s.service.DeepCopy()
	want.Finalizers = []string{finalizer}
	want.Labels = map[string]string{"l": "1"}
	reconcile.SetCondition(&want.Status.Conditions, metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Fine"}, time.Now())
	_, err = s.executor.Execute(t.Context(), s.service, reconcile.Plan{
		Object: want,
		Writes: []reconcile.Write{
			reconcile.Apply{
				Object: s.configMap("a", "1"),
			}, reconcile.Apply{
				Object: s.configMap("b", "1"),
			}, s.remove("old"), s.remove("never"),
		},
		Events: []reconcile.Event{{Type: corev1.EventTypeNormal, Reason: "Done", Message: "All is well"}},
	})
	require.NoError(t, err)
	got := s.newWrites(start)
	require.Empty(
		t,
		cmp.Diff(
			[]string{"PATCH /services/web", "PATCH /configmaps/a", "PATCH /configmaps/b", "DELETE /configmaps/old", "PATCH /services/web/status", "POST /events"},
			got,
		),
	)

	s.refresh(t)
	require.Equal(t, []string{finalizer}, s.service.Finalizers)
	require.Equal(t, "Fine", s.service.Status.Conditions[0].Reason)
	told := s.executorEvents(t)
	require.Len(t, told, 1)
	require.Equal(t, "All is well", told[0]["note"])
}

func TestAnEventMayTellOfAnObjectThatIsInNoNamespace(t *testing.T) {
	s := newScene(t)
	ns, err := typed.Get[corev1.Namespace](t.Context(), s.client, namespaces, "", s.namespace)
	require.NoError(t, err)
	_, err = s.executor.Execute(t.Context(), ns, reconcile.Plan{
		Events: []reconcile.Event{{Type: corev1.EventTypeWarning, Reason: "Seen", Namespace: s.namespace, Message: "m"}},
	})
	require.NoError(t, err)
	told := s.executorEvents(t)
	require.Len(t, told, 1)
	name, _, _ := unstructured.NestedString(told[0], "regarding", "name")
	require.Equal(t, s.namespace, name)
}

func TestAnEventThatIsToldOnceIsThereOnce(t *testing.T) {
	s := newScene(t)
	for _, e := range []reconcile.Event{
		{
			Reason: "Gone",
			Once:   true,
		}, {
			Reason: "Gone",
			Once:   true,
		}, {
			Reason: "Other",
			Once:   true,
		}, {
			Reason: "Again",
		}, {
			Reason: "Again",
		},
	} {
		e.Type, e.Message = corev1.EventTypeNormal, "m"
		_, err := s.executor.Execute(t.Context(), s.service, reconcile.Plan{Events: []reconcile.Event{e}})
		require.NoError(t, err)
	}
	told := map[any]int{}
	for _, e := range s.executorEvents(t) {
		told[e["reason"]]++
	}
	require.Equal(t, map[any]int{"Gone": 1, "Other": 1, "Again": 2}, told)
}

func TestAnEventOfTheStatusIsSentThoughAnotherWriteFails(t *testing.T) {
	s := newScene(t)
	want := s.service.DeepCopy()
	reconcile.SetCondition(&want.Status.Conditions, metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Fine"}, time.Now())
	elsewhere := s.configMap("a", "1")
	elsewhere.Namespace = "not-there"
	plan := reconcile.Plan{Object: want, Writes: []reconcile.Write{reconcile.Apply{Object: elsewhere}}, Events: []reconcile.Event{
		{
			Type:    corev1.EventTypeNormal,
			Reason:  "Changed",
			Message: "m",
			After:   reconcile.Status,
		}, {
			Type:    corev1.EventTypeNormal,
			Reason:  "Done",
			Message: "m",
		},
	}}
	_, err := s.executor.Execute(t.Context(), s.service, plan)
	require.ErrorContains(t, err, "not-there")
	require.Len(t, s.executorEvents(t), 1)
	require.Equal(t, "Changed", s.executorEvents(t)[0]["reason"])

	// There is no Event about a status that another writer wrote first.
	_, err = s.executor.Execute(t.Context(), s.service, plan)
	require.Error(t, err)
	require.Len(t, s.executorEvents(t), 1)
}

// TestAnEventOfTheWritesIsSentThoughTheStatusIsRefused: the next pass finds the writes done, and would
// not tell of them.
func TestAnEventOfTheWritesIsSentThoughTheStatusIsRefused(t *testing.T) {
	s := newScene(t)
	old := s.service.DeepCopy()
	_, err := s.client.Resource(services).Namespace(s.namespace).Patch(
		t.Context(), "web", types.MergePatchType, []byte(`{"metadata":{"labels":{"other":"1"}}}`), metav1.PatchOptions{},
	)
	require.NoError(t, err)
	want := old.DeepCopy()
	reconcile.SetCondition(&want.Status.Conditions, metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Fine"}, time.Now())
	event := func(reason string, after reconcile.Part) reconcile.Event {
		return reconcile.Event{Type: corev1.EventTypeNormal, Reason: reason, Message: "m", After: after}
	}
	plan := reconcile.Plan{Object: want, Writes: []reconcile.Write{reconcile.Apply{Object: s.configMap("a", "1")}}, Events: []reconcile.Event{
		event("Written", reconcile.Writes), event("Changed", reconcile.Status), event("Done", reconcile.Everything),
	}}
	result, err := s.executor.Execute(t.Context(), old, plan)
	require.NoError(t, err)
	require.NotZero(t, result.RequeueAfter, "the status is written soon")
	told := s.executorEvents(t)
	require.Len(t, told, 1)
	require.Equal(t, "Written", told[0]["reason"])

	elsewhere := s.configMap("a", "1")
	elsewhere.Namespace = "not-there"
	plan.Writes = []reconcile.Write{reconcile.Apply{Object: elsewhere}}
	_, err = s.executor.Execute(t.Context(), old, plan)
	require.Error(t, err)
	require.Len(t, s.executorEvents(t), 1, "a write failed")
}

func TestAPassThatChangesNothingSendsNothing(t *testing.T) {
	s := newScene(t)
	plan := func(version string) reconcile.Plan {
		return reconcile.Plan{Object: s.service.DeepCopy(), Writes: []reconcile.Write{reconcile.Apply{Object: s.configMap("a", "1"), LiveVersion: version}}}
	}
	_, err := s.executor.Execute(t.Context(), s.service, plan(""))
	require.NoError(t, err)
	live, err := s.client.Resource(configMaps).Namespace(s.namespace).Get(t.Context(), "a", metav1.GetOptions{})
	require.NoError(t, err)
	start := len(s.writes.Seen())
	_, err = s.executor.Execute(t.Context(), s.service, plan(live.GetResourceVersion()))
	require.NoError(t, err)
	require.Empty(t, s.newWrites(start))

	_, err = s.client.Resource(configMaps).Namespace(s.namespace).Patch(
		t.Context(), "a", types.MergePatchType, []byte(`{"data":{"k":"drift"}}`), metav1.PatchOptions{},
	)
	require.NoError(t, err)
	drifted, err := s.client.Resource(configMaps).Namespace(s.namespace).Get(t.Context(), "a", metav1.GetOptions{})
	require.NoError(t, err)
	_, err = s.executor.Execute(t.Context(), s.service, plan(drifted.GetResourceVersion()))
	require.NoError(t, err)
	repaired, err := typed.Get[corev1.ConfigMap](t.Context(), s.client, configMaps, s.namespace, "a")
	require.NoError(t, err)
	require.Equal(t, "1", repaired.Data["k"], "drift is seen by the version and repaired")
}

func TestAnOldViewIsAConflictAndNoError(t *testing.T) {
	s := newScene(t)
	old := s.service.DeepCopy()
	_, err := s.client.Resource(services).Namespace(s.namespace).Patch(
		t.Context(), "web", types.MergePatchType, []byte(`{"metadata":{"labels":{"other":"1"}}}`),
		metav1.PatchOptions{},
	)
	require.NoError(t, err)
	want := old.DeepCopy()
	want.Finalizers = []string{finalizer}
	result, err := s.executor.Execute(t.Context(), old, reconcile.Plan{Object: want, Writes: []reconcile.Write{reconcile.Apply{Object: s.configMap("a", "1")}}})
	require.NoError(t, err)
	require.NotZero(t, result.RequeueAfter)
	_, err = s.client.Resource(configMaps).Namespace(s.namespace).Get(t.Context(), "a", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "nothing is applied before the finalizer stands")
}

func TestAFailureKeepsTheFinalizerAndIsShown(t *testing.T) {
	s := newScene(t)
	held := s.service.DeepCopy()
	held.Finalizers = []string{finalizer}
	_, err := s.executor.Execute(t.Context(), s.service, reconcile.Plan{Object: held})
	require.NoError(t, err)
	s.refresh(t)

	free := s.service.DeepCopy()
	free.Finalizers = nil
	bad := s.configMap("Not A Name", "1")
	_, err = s.executor.Execute(t.Context(), s.service, reconcile.Plan{
		Object:    free,
		Writes:    []reconcile.Write{reconcile.Apply{Object: bad}, reconcile.Apply{Object: s.configMap("good", "1")}},
		OnFailure: &metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse, Reason: "Error"},
	})
	require.ErrorContains(t, err, "Not A Name")
	s.refresh(t)
	require.Equal(t, []string{finalizer}, s.service.Finalizers)
	require.Contains(t, s.service.Status.Conditions[0].Message, "Not A Name")
	_, err = s.client.Resource(configMaps).Namespace(s.namespace).Get(t.Context(), "good", metav1.GetOptions{})
	require.NoError(t, err, "one bad object does not stop another")

	_, err = s.executor.Execute(t.Context(), s.service, reconcile.Plan{Object: free})
	require.NoError(t, err)
	s.refresh(t)
	require.Empty(t, s.service.Finalizers)
}

func TestDeleteTakesOnlyTheObjectThatWasMeant(t *testing.T) {
	s := newScene(t)
	_, err := s.executor.Execute(t.Context(), s.service, reconcile.Plan{Writes: []reconcile.Write{reconcile.Apply{Object: s.configMap("a", "1")}}})
	require.NoError(t, err)
	target := reconcile.Target{Resource: configMaps, Namespace: s.namespace, Name: "a", UID: "another"}
	require.NoError(t, reconcile.Delete(t.Context(), s.client, target))
	live, err := s.client.Resource(configMaps).Namespace(s.namespace).Get(t.Context(), "a", metav1.GetOptions{})
	require.NoError(t, err, "another object has the name now: it stays")
	target.UID = live.GetUID()
	require.NoError(t, reconcile.Delete(t.Context(), s.client, target))
	_, err = s.client.Resource(configMaps).Namespace(s.namespace).Get(t.Context(), "a", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err))
}

func TestDeleteHoldsForTheVersionThatWasJudged(t *testing.T) {
	s := newScene(t)
	_, err := s.executor.Execute(t.Context(), s.service, reconcile.Plan{Writes: []reconcile.Write{reconcile.Apply{Object: s.configMap("a", "1")}}})
	require.NoError(t, err)
	judged, err := s.client.Resource(configMaps).Namespace(s.namespace).Get(t.Context(), "a", metav1.GetOptions{})
	require.NoError(t, err)
	edited, err := s.client.Resource(configMaps).Namespace(s.namespace).Patch(
		t.Context(), "a", types.MergePatchType, []byte(`{"data":{"k":"2"}}`), metav1.PatchOptions{},
	)
	require.NoError(t, err)
	target := reconcile.Target{Resource: configMaps, Namespace: s.namespace, Name: "a", UID: judged.GetUID(), Version: judged.GetResourceVersion()}
	require.True(t, apierrors.IsConflict(reconcile.Delete(t.Context(), s.client, target)))
	result, err := s.executor.Execute(t.Context(), s.service, reconcile.Plan{Writes: []reconcile.Write{reconcile.Remove{Target: target}}})
	require.NoError(t, err)
	require.NotZero(t, result.RequeueAfter, "it is judged again soon")
	target.Version = edited.GetResourceVersion()
	require.NoError(t, reconcile.Delete(t.Context(), s.client, target))
	_, err = s.client.Resource(configMaps).Namespace(s.namespace).Get(t.Context(), "a", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err))
	require.NoError(t, reconcile.Delete(t.Context(), s.client, target), "one that is gone is success")
}

func TestAnExactSpecHoldsNothingOfOthers(t *testing.T) {
	s := newScene(t)
	wanted := func() *corev1.Service {
		return &corev1.Service{TypeMeta: kind("Service"), ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "exact"},
			Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "one.example"}}
	}
	_, err := s.executor.Execute(t.Context(), s.service, reconcile.Plan{Writes: []reconcile.Write{reconcile.Apply{Object: wanted()}}})
	require.NoError(t, err)
	theirs := func() bool {
		live, err := typed.Get[corev1.Service](t.Context(), s.client, services, s.namespace, "exact")
		require.NoError(t, err)
		return live.Spec.Selector["app"] == "theirs"
	}
	_, err = s.client.Resource(services).Namespace(s.namespace).Patch(
		t.Context(), "exact", types.MergePatchType, []byte(`{"spec":{"selector":{"app":"theirs"}}}`),
		metav1.PatchOptions{FieldManager: "other"},
	)
	require.NoError(t, err)
	_, err = s.executor.Execute(t.Context(), s.service, reconcile.Plan{Writes: []reconcile.Write{reconcile.Apply{Object: wanted()}}})
	require.NoError(t, err)
	require.True(t, theirs(), "an apply leaves the fields of others")
	_, err = s.executor.Execute(t.Context(), s.service, reconcile.Plan{
		Order: reconcile.Parallel,
		Writes: []reconcile.Write{reconcile.Apply{
			Object: wanted(),
			Exact:  true,
		}, reconcile.Apply{
			Object: s.configMap("beside", "1"),
		}},
	})
	require.NoError(t, err)
	require.False(t, theirs(), "an exact one does not")
}

func TestAPlanConvergesAfterACrashBehindAnyWrite(t *testing.T) {
	scenario := func(t *testing.T, s *scene) (bool, error) {
		want := s.service.DeepCopy()
		want.Finalizers = []string{finalizer}
		want.Labels = map[string]string{"l": "1"}
		reconcile.SetCondition(&want.Status.Conditions, metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Fine"}, time.Now())
		_, err := s.executor.Execute(t.Context(), s.service, reconcile.Plan{
			Object: want,
			Writes: []reconcile.Write{
				reconcile.Apply{Object: s.configMap("a", "1")}, reconcile.Apply{Object: s.configMap("b", "1")},
				reconcile.Remove{Target: reconcile.Target{Resource: services, Namespace: s.namespace, Name: "gone"}},
			},
		})
		return err == nil, err
	}
	for n := 0; ; n++ {
		s := newScene(t)
		config, _ := faults.StopAfter(harness.Shared(t, "hub").Config, n)
		dying, err := dynamic.NewForConfig(config)
		require.NoError(t, err)
		whole := &scene{client: s.client, namespace: s.namespace, service: s.service, executor: reconcile.NewExecutor(dying, "test.executor", clock.RealClock{})}
		done, err := scenario(t, whole)
		if !done {
			require.ErrorIs(t, err, faults.ErrStopped, "crash behind write %d", n)
			s.refresh(t)
			done, err = scenario(t, s)
		}
		require.NoError(t, err)
		require.True(t, done)
		s.refresh(t)
		require.Equal(t, []string{finalizer}, s.service.Finalizers)
		require.Len(t, s.service.Status.Conditions, 1)
		if n == 4 {
			return
		}
	}
}
