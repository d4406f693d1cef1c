// SPDX-License-Identifier: Apache-2.0

package teardown

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

func TestAWorkHasLetGoOnceItsAgentAppliedThatItIsToLeaveItsObjects(t *testing.T) {
	orphaned := func(w *workv1.ManifestWork) {
		w.Spec.DeleteOption = &workv1.DeleteOption{PropagationPolicy: workv1.DeletePropagationPolicyTypeOrphan}
	}
	held := func(w *workv1.ManifestWork) { w.Finalizers = []string{workv1.FinalizerManifestWork} }
	applied := func(generation int64, objects ...metav1.ConditionStatus) func(*workv1.ManifestWork) {
		return func(w *workv1.ManifestWork) {
			w.Status.Conditions = []metav1.Condition{{Type: workv1.ConditionApplied, Status: metav1.ConditionTrue,
				ObservedGeneration: generation}}
			for _, status := range objects {
				m := workv1.ManifestCondition{Conditions: []metav1.Condition{{Type: workv1.ConditionApplied, Status: status}}}
				w.Status.ResourceStatus.Manifests = append(w.Status.ResourceStatus.Manifests, m)
			}
		}
	}
	for name, tc := range map[string]struct {
		made []func(*workv1.ManifestWork)
		want bool
	}{
		"its objects go with it":       {[]func(*workv1.ManifestWork){held, applied(2, "True")}, false},
		"no agent has taken it up":     {[]func(*workv1.ManifestWork){orphaned}, true},
		"its agent has not looked yet": {[]func(*workv1.ManifestWork){orphaned, held, applied(1, "True")}, false},
		"nothing is known of it":       {[]func(*workv1.ManifestWork){orphaned, held}, false},
		"its agent has let go": {
			[]func(*workv1.ManifestWork){orphaned, held, applied(2, "True", "True")},
			true,
		},
		"one object could not be applied": {
			[]func(*workv1.ManifestWork){orphaned, held, applied(2, "True", "False")},
			false,
		},
		"it has no objects":                        {[]func(*workv1.ManifestWork){orphaned, held, applied(2)}, true},
		"it is deleted, and leaves its objects so": {[]func(*workv1.ManifestWork){orphaned, held, gone}, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := &workv1.ManifestWork{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
			for _, make := range tc.made {
				make(w)
			}
			require.Equal(t, tc.want, hasLetGo(w))
		})
	}
}

func gone(w *workv1.ManifestWork) { w.DeletionTimestamp = &metav1.Time{} }

func TestOnlyWhatAnotherAttemptMendsIsTransient(t *testing.T) {
	resource := schema.GroupResource{Resource: "manifestworks"}
	conflict := fmt.Errorf("deleting: %w", apierrors.NewConflict(resource, "web", errors.New("Precondition failed")))
	busy := apierrors.NewTooManyRequests("busy", 1)
	forbidden := apierrors.NewForbidden(resource, "web", nil)
	require.True(t, isTransient(conflict))
	require.True(t, isTransient(fmt.Errorf("rights: %w", errors.Join(conflict, busy))))
	require.False(t, isTransient(errors.Join(conflict, forbidden)), "one of several is not")
	require.False(t, isTransient(forbidden))
	require.False(t, isTransient(ErrNotKept))
}
