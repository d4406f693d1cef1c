// SPDX-License-Identifier: Apache-2.0

package clustermanager

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

func TestWhatFailsIsToldWhileSomethingIsWaitedFor(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "deployments"}, "web", errors.New("a policy"))
	for name, tc := range map[string]struct {
		err             error
		reason, message string
	}{
		"an apply":        {errors.Join(forbidden), operatorv1.ReasonRuntimeResourceApplyFailed, "permit it, or change what refuses it"},
		"a part":          {fault{forbidden, operatorv1.ReasonHubResourceApplyFailed}, operatorv1.ReasonHubResourceApplyFailed, `"web" is forbidden: a policy`},
		"several of them": {errors.Join(errors.New("a"), errors.New("b")), operatorv1.ReasonRuntimeResourceApplyFailed, "not complete: a; b"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, unready := range []string{"", "the Deployments of the webhooks to be available"} {
				d := Decide(state(t, func(s *State) { s.Faulty, s.Unready = tc.err, unready }))
				c := apimeta.FindStatusCondition(d.Object.(*operatorv1.ClusterManager).Status.Conditions, operatorv1.ConditionApplied)
				require.NotNil(t, c)
				require.Equal(t, tc.reason, c.Reason)
				require.Contains(t, c.Message, tc.message)
			}
		})
	}
}

// source is a collection that was read or not, and whose last request came to err.
type source struct {
	err    error
	synced chan struct{}
}

func sourceOf(read bool, err error) *source {
	s := &source{err, make(chan struct{})}
	if read {
		close(s.synced)
	}
	return s
}

func (*source) Run(context.Context) error        { return nil }
func (*source) WaitSynced(context.Context) error { return nil }
func (*source) OnChange(func(reconcile.Key))     {}
func (*source) OnOutcome(func(error))            {}
func (s *source) Err() error                     { return s.err }
func (s *source) Synced() <-chan struct{}        { return s.synced }

func TestWhatCannotBeReadIsToldAfterAWhile(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "", errors.New("no right"))
	for name, tc := range map[string]struct {
		source *source
		told   bool
	}{
		"it works":                              {sourceOf(true, nil), false},
		"it is being read":                      {sourceOf(false, nil), false},
		"it was never read":                     {sourceOf(false, errors.New("no route")), true},
		"the API server is away for a while":    {sourceOf(true, errors.New("no route")), false},
		"the right to follow it has been taken": {sourceOf(true, forbidden), true},
	} {
		t.Run(name, func(t *testing.T) {
			r, list := unread{}, []followed{sourceOf(true, nil), tc.source}
			wait, err := r.look(list, now)
			require.NoError(t, err, "permissions take effect after a moment")
			require.Equal(t, tc.told, wait > 0)
			_, err = r.look(list, now.Add(readPatience))
			require.Equal(t, tc.told, err != nil)
			if tc.told {
				require.Equal(t, operatorv1.ReasonHubResourceApplyFailed, reasonOf(err))
				require.ErrorContains(t, err, tc.source.err.Error())
			}
			tc.source.err = nil
			_, err = r.look(list, now.Add(readPatience+time.Second))
			require.NoError(t, err)
		})
	}
}

func TestASpecThatCannotBeReadChangesNothing(t *testing.T) {
	manager := func(cpu, image string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
			"workImagePullSpec": image, "resourceRequirement": map[string]any{"resourceRequirements": map[string]any{"limits": map[string]any{"cpu": cpu}}},
		}}}
		u.SetUID("1")
		return u
	}
	const far = "1e99999999999999999999"
	r := &readable{}
	m, ok := r.keep(manager(far, "new"))
	require.True(t, ok)
	require.True(t, m.blank)
	require.Contains(t, m.problem, "cannot be read")
	m, _ = r.keep(manager("1", "old"))
	require.Empty(t, m.problem)
	m, _ = r.keep(manager(far, "new"))
	require.False(t, m.blank)
	require.NotEmpty(t, m.problem)
	require.Equal(t, "old", m.Spec.WorkImagePullSpec)
	other := manager(far, "new")
	other.SetUID("2")
	m, _ = r.keep(other)
	require.True(t, m.blank, "the spec of another one is not its")
}
