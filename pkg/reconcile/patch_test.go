// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func service(change func(*corev1.Service)) *corev1.Service {
	s := &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "u1", ResourceVersion: "7", Finalizers: []string{"a/x", "b/y"}},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": "web"}},
	}
	if change != nil {
		change(s)
	}
	return s
}

func TestPatchesHoldOnlyWhatDiffers(t *testing.T) {
	for name, tc := range map[string]struct {
		change                            func(*corev1.Service)
		wantMain, wantStatus, wantRelease map[string]any
	}{
		"nothing changes": {},
		"a finalizer is added before anything else": {
			change:   func(s *corev1.Service) { s.Finalizers = append(s.Finalizers, "c/z") },
			wantMain: map[string]any{"metadata": map[string]any{"finalizers": []string{"a/x", "b/y", "c/z"}}},
		},
		"a finalizer is dropped after everything else": {
			change:      func(s *corev1.Service) { s.Finalizers = []string{"b/y"} },
			wantRelease: map[string]any{"metadata": map[string]any{"finalizers": []string{"b/y"}}},
		},
		"one added and one dropped keeps both until the end": {
			change:      func(s *corev1.Service) { s.Finalizers = []string{"b/y", "c/z"} },
			wantMain:    map[string]any{"metadata": map[string]any{"finalizers": []string{"b/y", "c/z", "a/x"}}},
			wantRelease: map[string]any{"metadata": map[string]any{"finalizers": []string{"b/y", "c/z"}}},
		},
		"a spec field is set and another removed": {
			change: func(s *corev1.Service) {
				s.Spec.Selector = nil
				s.Spec.ClusterIP = "None"
			},
			wantMain: map[string]any{"spec": map[string]any{"clusterIP": "None", "selector": nil}},
		},
		"labels and annotations": {
			change: func(s *corev1.Service) {
				s.Labels = map[string]string{"l": "1"}
				s.Annotations = map[string]string{"a": "2"}
			},
			wantMain: map[string]any{"metadata": map[string]any{"labels": map[string]any{
				"l": "1",
			}, "annotations": map[string]any{
				"a": "2",
			}}},
		},
		"the status goes alone": {
			change: func(s *corev1.Service) {
				s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{Hostname: "h"}}
			},
			wantStatus: map[string]any{"status": map[string]any{"loadBalancer": map[string]any{"ingress": []any{map[string]any{"hostname": "h"}}}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := newObjectPatch(service(nil), service(tc.change))
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(orEmpty(tc.wantMain), orEmpty(p.main())), "main")
			require.Empty(t, cmp.Diff(orEmpty(tc.wantStatus), orEmpty(p.status())), "status")
			require.Empty(t, cmp.Diff(orEmpty(tc.wantRelease), orEmpty(p.release())), "release")
		})
	}
}

func orEmpty(m map[string]any) map[string]any {
	if m == nil {
		return map[string]any{}
	}
	return m
}

func TestNoObjectInThePlanMeansNoPatch(t *testing.T) {
	var none *corev1.Service
	for name, after := range map[string]Object{"nil": nil, "a nil pointer": none} {
		t.Run(name, func(t *testing.T) {
			p, err := newObjectPatch(service(nil), after)
			require.NoError(t, err)
			require.Empty(t, p.main())
			require.Empty(t, p.status())
			require.Empty(t, p.release())
		})
	}
}

func TestAPassThatChangesNothingTakesNothingApart(t *testing.T) {
	for name, after := range map[string]Object{"nothing is planned": nil, "a typed nil": (*corev1.Service)(nil), "the same is planned": service(nil)} {
		t.Run(name, func(t *testing.T) {
			p, err := newObjectPatch(service(nil), after)
			require.NoError(t, err)
			require.Nil(t, p.before)
			require.Empty(t, p.main())
			require.Empty(t, p.status())
			require.Empty(t, p.release())
		})
	}
}

func TestAnObjectWithoutKindIsRefused(t *testing.T) {
	_, err := newObjectPatch(service(func(s *corev1.Service) { s.TypeMeta = metav1.TypeMeta{} }), nil)
	require.ErrorContains(t, err, "apiVersion and kind are not set")
}

func TestAFailureBecomesACondition(t *testing.T) {
	p, err := newObjectPatch(service(nil), service(nil))
	require.NoError(t, err)
	now := time.Date(2026, 1, 2, 3, 4, 5, 999, time.UTC)
	failure := errors.Join(errors.New("applying a"), errors.New("applying b"))
	require.NoError(t, p.setFailure(metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse, Reason: "Error"}, failure, now))
	want := map[string]any{"status": map[string]any{"conditions": []any{map[string]any{
		"type": "Ready", "status": "False", "reason": "Error", "message": "applying a; applying b", "lastTransitionTime": "2026-01-02T03:04:05Z"}}}}
	require.Empty(t, cmp.Diff(want, p.status()))
}

func TestAFailureThatGoesOnIsWrittenOnce(t *testing.T) {
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	failed := metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse, Reason: "Error", Message: "refused"}
	stored, planned := service(nil), service(nil)
	SetCondition(&stored.Status.Conditions, failed, began)
	SetCondition(&planned.Status.Conditions, metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Fine"}, began.Add(time.Hour))
	failed.Message = ""
	p, err := newObjectPatch(stored, planned)
	require.NoError(t, err)
	require.NoError(t, p.setFailure(failed, errors.New("refused"), began.Add(time.Hour)))
	require.Empty(t, p.status())
	p, err = newObjectPatch(stored, planned)
	require.NoError(t, err)
	require.NotEmpty(t, p.status(), "what succeeds is written")
}

func TestSetCondition(t *testing.T) {
	t0 := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var conditions []metav1.Condition
	c := metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Fine", Message: "m"}
	require.True(t, SetCondition(&conditions, c, t0), "a new condition")
	require.False(t, SetCondition(&conditions, c, t0.Add(time.Hour)), "the same again")
	c.Message = "other"
	require.True(t, SetCondition(&conditions, c, t0.Add(time.Hour)))
	require.Equal(t, t0, conditions[0].LastTransitionTime.UTC(), "the status did not change")
	c.Status, c.Message = metav1.ConditionFalse, strings.Repeat("x", maxMessage+1)
	require.True(t, SetCondition(&conditions, c, t0.Add(2*time.Hour)))
	require.Equal(t, t0.Add(2*time.Hour), conditions[0].LastTransitionTime.UTC())
	require.Len(t, conditions[0].Message, maxMessage)
}

func TestConflictsAlone(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "x"}, "n", errors.New("older"))
	other := errors.New("no")
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"one conflict":           {conflict, true},
		"joined conflicts":       {errors.Join(conflict, errors.Join(conflict)), true},
		"a conflict and another": {errors.Join(conflict, other), false},
		"another":                {other, false},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, tc.want, onlyConflicts(tc.err)) })
	}
}

func TestResourceOf(t *testing.T) {
	for kind, want := range map[string]string{
		"ManagedCluster": "managedclusters", "NetworkPolicy": "networkpolicies", "ClusterManagementAddOn": "clustermanagementaddons",
		"Lease": "leases", "ManagedClusterSet": "managedclustersets",
	} {
		require.Equal(t, want, ResourceOf(schema.GroupVersionKind{Group: "g", Version: "v1", Kind: kind}).Resource)
	}
}

func TestSooner(t *testing.T) {
	require.Equal(t, Result{time.Second}, Result{}.Sooner(Result{time.Second}))
	require.Equal(t, Result{time.Second}, Result{time.Second}.Sooner(Result{}))
	require.Equal(t, Result{time.Second}, Result{time.Minute}.Sooner(Result{time.Second}))
	require.Equal(t, Result{time.Second}, Result{time.Second}.Sooner(Result{time.Minute}))
}
