// SPDX-License-Identifier: Apache-2.0

package work

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	objects "github.com/kubectl-ocm/kubectl-ocm/internal/apply"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

var jobs = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}

const migration = `{"apiVersion":"batch/v1","kind":"Job","metadata":{"namespace":"NS","name":"migration"},"spec":{"template":{"spec":{
		"restartPolicy":"Never","containers":[{"name":"main","image":"%s"}]}}}}`

func data(name, value string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"NS","name":%q},"data":{"k":%q}}`, name, value)
}

// ruled adds condition rules for objects in the scene's namespace.
func (s *scene) ruled(group, resource, name string, rules ...workv1.ConditionRule) change {
	return func(w *workv1.ManifestWork) {
		w.Spec.ManifestConfigs = append(w.Spec.ManifestConfigs, workv1.ManifestConfigOption{
			ResourceIdentifier: workv1.ResourceIdentifier{Group: group, Resource: resource, Namespace: s.namespace, Name: name},
			ConditionRules:     rules,
		})
	}
}

func noConfigs(w *workv1.ManifestWork) { w.Spec.ManifestConfigs = nil }

func builtIn(condition string) workv1.ConditionRule {
	return workv1.ConditionRule{Condition: condition, Type: workv1.ConditionRuleTypeWellKnownConditions}
}

func celRule(condition, expression string) workv1.ConditionRule {
	return workv1.ConditionRule{Condition: condition, Type: workv1.ConditionRuleTypeCEL, CELExpressions: []string{expression}}
}

// conditionText returns a condition of the work as text, at the generation of the work;
// empty if there is none.
func (s *scene) conditionText(work, condition string) string {
	s.t.Helper()
	w := s.work(work)
	return saysOf(w.Status.Conditions, condition, w.Generation)
}

// manifestSays returns a condition of a manifest as text.
func (s *scene) manifestSays(work string, ordinal int, condition string) string {
	s.t.Helper()
	return manifestSaysOf(s.work(work), ordinal, condition)
}

func manifestSaysOf(w *workv1.ManifestWork, ordinal int, condition string) string {
	if ordinal >= len(w.Status.ResourceStatus.Manifests) {
		return ""
	}
	return saysOf(w.Status.ResourceStatus.Manifests[ordinal].Conditions, condition, w.Generation)
}

func saysOf(conditions []metav1.Condition, condition string, generation int64) string {
	c := apimeta.FindStatusCondition(conditions, condition)
	if c == nil || (c.ObservedGeneration != 0 && c.ObservedGeneration != generation) {
		return ""
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s %s", c.Status, c.Reason, c.Message))
}

func (s *scene) soonSays(work, condition, want string) {
	s.t.Helper()
	var got string
	s.eventually(func() bool { got = s.conditionText(work, condition); return got == want }, "%s of %s is not %q", condition, work, want)
}

func (s *scene) soonManifestSays(work string, ordinal int, condition, want string) {
	s.t.Helper()
	s.eventually(func() bool { return s.manifestSays(work, ordinal, condition) == want }, "%s of manifest %d of %s is not %q", condition, ordinal, work, want)
}

// finish sets the pod of a Job to succeeded, as a kubelet does; the Job controller does
// the rest.
func (s *scene) finish(name string) {
	s.t.Helper()
	s.eventually(func() bool {
		list, err := s.spoke.Resource(pods).Namespace(s.namespace).List(context.Background(), metav1.ListOptions{LabelSelector: "job-name=" + name})
		require.NoError(s.t, err)
		if len(list.Items) != 1 {
			return false
		}
		_, err = s.spoke.Resource(pods).Namespace(s.namespace).Patch(context.Background(), list.Items[0].GetName(), types.MergePatchType,
			[]byte(`{"status":{"phase":"Succeeded"}}`), metav1.PatchOptions{}, "status")
		return err == nil
	}, "job %s has no pod", name)
}

// deleteObject deletes an object on the managed cluster as another user.
func (s *scene) deleteObject(gvr schema.GroupVersionResource, name string) {
	s.t.Helper()
	background := metav1.DeletePropagationBackground
	require.NoError(s.t, s.spoke.Resource(gvr).Namespace(s.namespace).Delete(context.Background(), name, metav1.DeleteOptions{PropagationPolicy: &background}))
}

// TestAJobThatIsCompleteNeverRunsAgain removes a finished Job, as its TTL does, and then
// does everything to the work and the agent except change the Job's manifest.
func TestAJobThatIsCompleteNeverRunsAgain(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	stop := s.start()
	job := fmt.Sprintf(migration, "example.com/migration:1")
	s.create("job", []string{job}, s.ruled("batch", "jobs", "migration", builtIn(workv1.ConditionComplete)))
	s.soonSays("job", "Complete", "False ConditionRulesAggregated Job is not finished")
	s.finish("migration")
	s.soonSays("job", "Complete", "True ConditionRulesAggregated Job is finished")
	require.Equal(t, "True ConditionRuleEvaluated Job is finished", s.manifestSays("job", 0, "Complete"))
	first := s.get(jobs, "migration")

	s.deleteObject(jobs, "migration")
	s.soonSays("job", "Available", "False ResourcesNotAvailable 1 of 1 resources are not available")
	stay := func() {
		t.Helper()
		require.Nil(t, s.get(jobs, "migration"), "the job runs again")
		s.soonSays("job", "Complete", "True ConditionRulesAggregated Job is finished")
		require.Equal(t, "True AppliedManifestComplete Apply manifest complete", s.manifestSays("job", 0, "Applied"))
	}
	stay()
	s.update("job", s.manifests(job, data("beside", "1")))
	s.soonSays("job", "Applied", "True AppliedManifestWorkComplete Apply manifest work complete")
	require.Equal(t, "1", s.data("beside", "k"), "a complete work takes edits")
	stay()

	stop()
	s.update("job", s.manifests(data("beside", "2"), job))
	stop = s.start()
	s.eventually(func() bool { return s.data("beside", "k") == "2" }, "the new agent did not apply the edit")
	s.soonManifestSays("job", 1, "Available", "False ResourceNotAvailable Resource is not available")
	s.soonManifestSays("job", 1, "Complete", "True ConditionRuleEvaluated Job is finished")
	require.Nil(t, s.get(jobs, "migration"), "the job runs again")
	stop()
	s.start()
	s.deleteObject(configMaps, "beside")
	s.eventually(func() bool { return s.data("beside", "k") == "2" }, "what is not complete is repaired")
	require.Nil(t, s.get(jobs, "migration"), "the job runs again")

	s.update("job", s.manifests(data("beside", "2"), fmt.Sprintf(migration, "example.com/migration:2")))
	s.eventually(func() bool { return s.get(jobs, "migration") != nil }, "another manifest is another job")
	require.NotEqual(t, first.GetUID(), s.get(jobs, "migration").GetUID())
	s.soonSays("job", "Complete", "False ConditionRulesAggregated Job is not finished")
	require.Empty(t, s.applied("job").Annotations[workv1.AnnotationCompleteManifests])
}

func TestAnEditOfACompleteJobIsTriedAndItsErrorTold(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.start()
	s.create("job", []string{fmt.Sprintf(migration, "example.com/migration:1")}, s.ruled("batch", "jobs", "*", builtIn(workv1.ConditionComplete)))
	s.soonSays("job", "Complete", "False ConditionRulesAggregated Job is not finished")
	s.finish("migration")
	s.soonSays("job", "Complete", "True ConditionRulesAggregated Job is finished")
	s.update("job", s.manifests(fmt.Sprintf(migration, "example.com/migration:2")))
	s.soonSays("job", "Applied", "False AppliedManifestWorkFailed Failed to apply manifest work")
	require.Contains(t, s.manifestSays("job", 0, "Applied"), "such a field cannot be changed on an object that exists")
	s.update("job", s.manifests(fmt.Sprintf(migration, "example.com/migration:1")))
	s.soonSays("job", "Applied", "True AppliedManifestWorkComplete Apply manifest work complete")
	s.soonSays("job", "Complete", "True ConditionRulesAggregated Job is finished")
}

func TestACompleteManifestRestsUntilItIsEditedOrNoLongerComplete(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.start()
	rule := celRule(workv1.ConditionComplete, "object.data.k != 'wait'")
	rule.MessageExpression = "'k is ' + object.data.k"
	s.create("map", []string{data("one", "wait")}, s.ruled("", "configmaps", "one", rule))
	s.soonSays("map", "Complete", "False ConditionRulesAggregated k is wait")
	s.update("map", s.manifests(data("one", "done")))
	s.soonSays("map", "Complete", "True ConditionRulesAggregated k is done")

	s.patch(configMaps, "one", `{"data":{"k":"theirs"}}`)
	s.soonSays("map", "Complete", "True ConditionRulesAggregated k is theirs")
	require.Equal(t, "theirs", s.data("one", "k"), "a complete object is not repaired")
	s.update("map", s.manifests(data("one", "edited")))
	s.soonSays("map", "Complete", "True ConditionRulesAggregated k is edited")
	s.patch(configMaps, "one", `{"data":{"k":"wait"}}`)
	s.eventually(func() bool { return s.data("one", "k") == "edited" }, "an object that is no longer complete is repaired")
	s.soonSays("map", "Complete", "True ConditionRulesAggregated k is edited")

	s.remove("map")
	s.gone("map")
	require.Equal(t, "-", s.data("one", "k"), "a complete work is deleted as any other")
}

// TestTheOwnerOfARestingObjectFollowsTheWork changes whether a complete object is deleted
// with its work. Nothing else of it is written, and it is never created.
func TestTheOwnerOfARestingObjectFollowsTheWork(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.start()
	rule := celRule(workv1.ConditionComplete, "object.data.k != 'wait'")
	rule.MessageExpression = "'k is ' + object.data.k"
	s.create("map", []string{data("one", "done")}, s.ruled("", "configmaps", "one", rule))
	s.soonSays("map", "Complete", "True ConditionRulesAggregated k is done")
	s.patch(configMaps, "one", `{"data":{"k":"theirs"}}`)
	s.soonSays("map", "Complete", "True ConditionRulesAggregated k is theirs")
	owned := func(want int) {
		t.Helper()
		s.eventually(func() bool { return len(s.get(configMaps, "one").GetOwnerReferences()) == want }, "want %d owners", want)
		require.Equal(t, "theirs", s.data("one", "k"), "a complete object is not written")
	}
	owned(1)
	s.patch(configMaps, "one", `{"metadata":{"ownerReferences":null}}`)
	owned(1)
	s.update("map", orphan())
	owned(0)
	s.update("map", func(w *workv1.ManifestWork) { w.Spec.DeleteOption = nil })
	owned(1)

	live, owner := s.get(configMaps, "one"), objects.OwnerOf(s.applied("map"))
	s.deleteObject(configMaps, "one")
	s.soonManifestSays("map", 0, "Available", "False ResourceNotAvailable Resource is not available")
	result, err := objects.New(s.spoke, nil).Apply(t.Context(), objects.Request{
		Resource: configMaps, Object: live, Owner: owner, Live: live, OwnerOnly: true, NeverCreate: true,
	})
	require.NoError(t, err)
	require.Nil(t, result.Live, "it went while it was disowned")
	require.Nil(t, s.get(configMaps, "one"), "it is made again")
}

func TestRulesArePickedAndPruned(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.start()
	first, second := celRule("Ready", "object.data.k == '1'"), celRule("Late", "true")
	s.create("map", []string{data("web-1", "1"), data("web-2", "2"), data("db", "1")},
		s.ruled("", "configmaps", "web-*", first, builtIn(workv1.ConditionComplete)), s.ruled("", "configmaps", "*", second))
	s.soonSays("map", "Ready", "False ConditionRulesAggregated Aggregated from 2 manifest conditions")
	require.Equal(t, "True ConditionRuleEvaluated Manifest is Ready", s.manifestSays("map", 0, "Ready"))
	require.Equal(t, "False ConditionRuleEvaluated Manifest is not Ready", s.manifestSays("map", 1, "Ready"))
	require.Empty(t, s.manifestSays("map", 2, "Ready"))
	require.Empty(t, s.manifestSays("map", 0, "Late"), "the first entry with rules decides")
	require.Equal(t, "True ConditionRulesAggregated Manifest is Late", s.conditionText("map", "Late"))
	require.Empty(t, s.conditionText("map", "Complete"), "nothing is built in for a config map")

	s.update("map", noConfigs, s.ruled("", "configmaps", "*", second))
	s.soonSays("map", "Late", "True ConditionRulesAggregated Aggregated from 3 manifest conditions")
	w := s.work("map")
	require.Nil(t, apimeta.FindStatusCondition(w.Status.Conditions, "Ready"), "the condition goes with its rule")
	require.Nil(t, apimeta.FindStatusCondition(w.Status.ResourceStatus.Manifests[0].Conditions, "Ready"))
}

func TestOneManifestThatProgressesMakesTheWorkProgress(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.start()
	s.create("map", []string{data("one", "done"), data("two", "done")}, s.ruled("", "configmaps", "*",
		celRule(workv1.ConditionProgressing, "object.data.k == 'busy'"), celRule(workv1.ConditionDegraded, "object.data.missing == 'x'")))
	s.soonSays("map", "Progressing", "False ConditionRulesAggregated Aggregated from 2 manifest conditions")
	s.update("map", s.manifests(data("one", "done"), data("two", "busy")))
	s.soonSays("map", "Progressing", "True ConditionRulesAggregated Aggregated from 2 manifest conditions")
	require.Equal(t, "False ConditionRuleExpressionError celExpressions[0]: no such key: missing", s.manifestSays("map", 0, "Degraded"))
	require.Equal(t, "True AppliedManifestComplete Apply manifest complete", s.manifestSays("map", 0, "Applied"), "a faulty rule hurts nothing else")
}

// TestHostileRulesOfManyManifestsArePutOff has more manifests than a pass evaluates, each
// with rules that use up the allowed cost or, on a slow machine, the allowed time.
func TestHostileRulesOfManyManifestsArePutOff(t *testing.T) {
	t.Parallel()
	const many = 6
	s := newScene(t)
	var declared []string
	for i := range many {
		name := fmt.Sprint("large-", i)
		declared = append(declared, configMap(name))
		apply(
			t, s.spoke, configMaps, s.namespace,
			fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q},"data":{"k":%q}}`, name, strings.Repeat("a", 300_000)),
		)
	}
	hostile := celRule("Dear", "")
	hostile.CELExpressions = slices.Repeat([]string{"!object.data.k.contains('b')"}, 400)
	s.start()
	s.create("web", declared, strategy("*", workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeReadOnly}), s.ruled("", "configmaps", "*", hostile))
	says := func(ordinal int, begin string) bool {
		return strings.HasPrefix(s.manifestSays("web", ordinal, "Dear"), begin)
	}
	const dear, late = "False ConditionRuleExpressionError ", "Unknown ConditionRuleInternalError not evaluated yet, "
	var w *workv1.ManifestWork
	s.eventually(func() bool {
		w = s.work("web")
		return strings.HasPrefix(manifestSaysOf(w, 0, "Dear"), dear)
	}, "the first manifest is not evaluated")
	require.True(t, strings.HasPrefix(manifestSaysOf(w, many-1, "Dear"), late), "the last one is evaluated in the same pass")

	for i := 0; says(many-1, late); i++ {
		require.Less(t, i, 10*many, "the rules do not go on")
		s.clock.forward(time.Minute)
		s.patch(configMaps, "large-0", fmt.Sprintf(`{"metadata":{"labels":{"l":"%d"}}}`, i)) // an event, because the clock does not drive timers
		s.rests()
	}
	require.True(t, says(many-1, dear))
}
