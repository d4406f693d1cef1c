// SPDX-License-Identifier: Apache-2.0

package work

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

// strategy gives ConfigMaps with a matching name an update strategy.
func strategy(name string, u workv1.UpdateStrategy) change {
	return func(w *workv1.ManifestWork) {
		w.Spec.ManifestConfigs = append(w.Spec.ManifestConfigs, workv1.ManifestConfigOption{
			ResourceIdentifier: workv1.ResourceIdentifier{Resource: "configmaps", Namespace: "*", Name: name},
			UpdateStrategy:     &u,
		})
	}
}

func serverSide(manager string, force bool, ignore ...workv1.IgnoreField) workv1.UpdateStrategy {
	return workv1.UpdateStrategy{
		Type:            workv1.UpdateStrategyTypeServerSideApply,
		ServerSideApply: &workv1.ServerSideApplyConfig{FieldManager: manager, Force: force, IgnoreFields: ignore},
	}
}

func TestUpdateLeavesWhatOthersAdded(t *testing.T) {
	s := newScene(t)
	apply(
		t, s.spoke, configMaps, s.namespace,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one","annotations":{"theirs":"1"},
			"finalizers":["example.com/theirs"]},"data":{"theirs":"1","a":"0"}}`,
	)
	s.start()
	s.create("web", []string{`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one","namespace":"NS","annotations":{"ours":"1"}},"data":{"a":"1"}}`})
	s.ready("web")
	one := s.get(configMaps, "one")
	require.Equal(t, map[string]string{"theirs": "1", "ours": "1"}, one.GetAnnotations())
	require.Equal(t, []string{"example.com/theirs"}, one.GetFinalizers())
	require.Equal(t, "1", s.data("one", "theirs"))
	require.Equal(t, "1", s.data("one", "a"), "what the work declares wins")

	s.update("web", s.manifests(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one","namespace":"NS"},"data":{"a":"1"}}`))
	s.ready("web")
	require.Equal(t, map[string]string{"theirs": "1"}, s.get(configMaps, "one").GetAnnotations(), "what the manifest drops goes, what others added stays")
	s.patch(configMaps, "one", `{"metadata":{"finalizers":null}}`)
}

func TestUpdateTakesOverWhatAnEarlierAgentWroteByPut(t *testing.T) {
	s := newScene(t)
	old := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "one", "namespace": s.namespace},
		"data": map[string]any{"a": "0", "dropped": "0"},
	}}
	_, err := s.spoke.Resource(configMaps).Namespace(s.namespace).Create(context.Background(), old, metav1.CreateOptions{FieldManager: "work-agent"})
	require.NoError(t, err)
	s.patch(configMaps, "one", `{"data":{"theirs":"1"}}`)
	s.start()
	s.create("web", []string{configMap("one", "a", "1")})
	s.ready("web")
	require.Equal(t, "1", s.data("one", "a"))
	require.Empty(t, s.data("one", "dropped"), "what the earlier agent wrote and the manifest does not say must go")
	require.Equal(t, "1", s.data("one", "theirs"))
	for _, entry := range s.get(configMaps, "one").GetManagedFields() {
		if entry.Manager == "work-agent" {
			require.Equal(t, metav1.ManagedFieldsOperationApply, entry.Operation)
		}
	}
}

func TestUpdateFallsBackToAMergeWhereServerSideApplyRefuses(t *testing.T) {
	s := newScene(t)
	s.start()
	twice := `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"NS","labels":{"v":"1","old":"1"}},"spec":{"replicas":1,
		"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},
		"spec":{"containers":[{"name":"web","image":"web:1","env":[{"name":"A","value":"1"},{"name":"A","value":"2"}]}]}}}}`
	s.create("web", []string{twice})
	work := s.ready("web")
	require.Contains(t, condition(work, 0, "Applied").Message, "Apply manifest complete: server-side apply refused the manifest (")
	require.Contains(t, condition(work, 0, "Applied").Message, `duplicate entries for key [name="A"]), so a three-way merge patch was used`)
	require.Len(t, s.get(deployments, "web").GetOwnerReferences(), 1)

	s.update("web", s.manifests(replace(replace(twice, `"v":"1","old":"1"`, `"v":"2"`), "web:1", "web:2")))
	s.ready("web")
	require.Equal(t, map[string]string{"v": "2"}, s.get(deployments, "web").GetLabels(), "the dropped label must go")
	s.patch(deployments, "web", `{"spec":{"replicas":5}}`)
	s.eventually(func() bool {
		n, _, _ := unstructured.NestedInt64(s.get(deployments, "web").Object, "spec", "replicas")
		return n == 1
	}, "drift is not repaired")
}

func TestSecretsAreAppliedFromStringData(t *testing.T) {
	s := newScene(t)
	s.start()
	s.create("web", []string{`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"one","namespace":"NS"},"stringData":{"a":"sesame"}}`})
	s.ready("web")
	value, _, _ := unstructured.NestedString(s.get(secrets, "one").Object, "data", "a")
	require.Equal(t, "c2VzYW1l", value)
	s.patch(secrets, "one", `{"data":{"a":"eA=="}}`)
	s.eventually(func() bool {
		value, _, _ := unstructured.NestedString(s.get(secrets, "one").Object, "data", "a")
		return value == "c2VzYW1l"
	}, "drift of a Secret is not repaired")
}

func TestCreateOnlyNeverChangesContent(t *testing.T) {
	s := newScene(t)
	apply(t, s.spoke, configMaps, s.namespace, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"theirs"},"data":{"a":"0"}}`)
	s.start()
	once := strategy("*", workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeCreateOnly})
	s.create("web", []string{configMap("one", "a", "1"), configMap("theirs", "a", "1")}, once)
	s.ready("web")
	require.Equal(t, "1", s.data("one", "a"))
	require.Equal(t, "0", s.data("theirs", "a"))
	require.Len(t, s.get(configMaps, "theirs").GetOwnerReferences(), 1, "it is adopted all the same")
	s.update("web", s.manifests(configMap("one", "a", "2"), configMap("theirs", "a", "2")))
	s.ready("web")
	s.patch(configMaps, "one", `{"data":{"a":"3"}}`)
	s.never(func() bool { return s.data("one", "a") != "3" || s.data("theirs", "a") != "0" }, second, "its content is changed")
	s.remove("web")
	s.gone("web")
	require.Equal(t, "-", s.data("one", "a"))
	require.Equal(t, "-", s.data("theirs", "a"))
}

func TestReadOnlyWritesNothing(t *testing.T) {
	s := newScene(t)
	s.start()
	s.create("web", []string{configMap("theirs", "a", "1")}, strategy("*", workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeReadOnly}))
	s.settled("web", "Applied", metav1.ConditionTrue)
	s.settled("web", "Available", metav1.ConditionFalse)
	apply(t, s.spoke, configMaps, s.namespace, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"theirs"},"data":{"a":"0"}}`)
	s.settled("web", "Available", metav1.ConditionTrue)
	theirs := s.get(configMaps, "theirs")
	require.Empty(t, theirs.GetOwnerReferences())
	s.eventually(func() bool { return s.applied("web").Status.AppliedResources[0].UID == theirs.GetUID() }, "its identity is not recorded")
	require.NoError(t, s.spoke.Resource(configMaps).Namespace(s.namespace).Delete(context.Background(), "theirs", metav1.DeleteOptions{}))
	s.settled("web", "Available", metav1.ConditionFalse)
	apply(t, s.spoke, configMaps, s.namespace, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"theirs"},"data":{"a":"0"}}`)
	s.settled("web", "Available", metav1.ConditionTrue)
	s.remove("web")
	s.gone("web")
	require.Equal(t, "0", s.data("theirs", "a"))
}

func TestTheFirstMatchingStrategyHolds(t *testing.T) {
	s := newScene(t)
	s.start()
	s.create("web", []string{configMap("cm-a", "a", "1"), configMap("other", "a", "1")},
		strategy("cm-*", workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeCreateOnly}),
		strategy("*", workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeUpdate}))
	s.ready("web")
	s.update("web", s.manifests(configMap("cm-a", "a", "2"), configMap("other", "a", "2")))
	s.ready("web")
	require.Equal(t, "1", s.data("cm-a", "a"))
	require.Equal(t, "2", s.data("other", "a"))
}

func TestServerSideApplySaysWhoHoldsAField(t *testing.T) {
	s := newScene(t)
	apply(t, s.spoke, configMaps, s.namespace, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one"},"data":{"a":"theirs"}}`)
	s.start()
	s.create("web", []string{configMap("one", "a", "ours", "b", "ours")}, strategy("one", serverSide("", false)))
	work := s.settled("web", "Applied", metav1.ConditionFalse)
	s.settled("web", "Available", metav1.ConditionTrue)
	require.Equal(t, "AppliedManifestFailed", condition(work, 0, "Applied").Reason)
	require.Contains(t, condition(work, 0, "Applied").Message, `Apply failed with 1 conflict: conflict with "test": .data.a`)
	s.rests()
	s.never(func() bool { return len(writes(s.sent.Take(), "spoke")) > 0 }, second, "a conflict is not tried again before the object changes")

	s.update("web", s.manifests(configMap("one", "b", "ours")))
	s.ready("web")
	require.Equal(t, "theirs", s.data("one", "a"))
	s.update("web", s.manifests(configMap("one", "a", "ours", "b", "ours")), func(w *workv1.ManifestWork) {
		w.Spec.ManifestConfigs[0].UpdateStrategy.ServerSideApply.Force = true
	})
	s.ready("web")
	require.Equal(t, "ours", s.data("one", "a"))
}

func TestAConflictOverAnObjectThatTheWatchPassedOverComesToRest(t *testing.T) {
	s := newScene(t)
	apply(t, s.spoke, configMaps, s.namespace, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one"},"data":{"a":"theirs"}}`)
	s.start()
	s.create("watches", []string{configMap("two", "a", "1")})
	s.ready("watches")
	s.rests()
	s.create("web", []string{configMap("one", "a", "ours")}, strategy("one", serverSide("", false)))
	s.settled("web", "Applied", metav1.ConditionFalse)
	s.rests()
	s.never(func() bool { return len(s.sent.Take()) > 0 }, 3*second, "the object counts as gone")
	apply(t, s.spoke, configMaps, s.namespace, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one"}}`)
	s.ready("web")
	require.Equal(t, "ours", s.data("one", "a"))
}

func TestAConflictHealsWhenTheOtherLetsGo(t *testing.T) {
	s := newScene(t)
	apply(t, s.spoke, configMaps, s.namespace, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one"},"data":{"a":"theirs"}}`)
	s.start()
	s.create("web", []string{configMap("one", "a", "ours")}, strategy("one", serverSide("", false)))
	s.settled("web", "Applied", metav1.ConditionFalse)
	apply(t, s.spoke, configMaps, s.namespace, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one"}}`)
	s.ready("web")
	require.Equal(t, "ours", s.data("one", "a"))
}

func TestTwoManagersShareAnObject(t *testing.T) {
	s := newScene(t)
	s.start()
	s.create("first", []string{configMap("one", "a", "1")}, strategy("one", serverSide("work-agent-first", false)))
	s.create("second", []string{configMap("one", "b", "2")}, strategy("one", serverSide("work-agent-second", false)))
	s.ready("first")
	s.ready("second")
	s.eventually(func() bool {
		return s.data("one", "a") == "1" && s.data("one", "b") == "2" && len(s.get(configMaps, "one").GetOwnerReferences()) == 2
	}, "the works do not share it")
	for _, option := range []struct {
		policy workv1.DeletePropagationPolicyType
		owners int
	}{{workv1.DeletePropagationPolicyTypeOrphan, 1}, {workv1.DeletePropagationPolicyTypeForeground, 2}} {
		s.update("first", policy(option.policy))
		s.eventually(func() bool { return len(s.get(configMaps, "one").GetOwnerReferences()) == option.owners }, "the owners do not follow %s", option.policy)
	}
	s.remove("first")
	s.gone("first")
	require.Len(t, s.get(configMaps, "one").GetOwnerReferences(), 1)
	require.Equal(t, "2", s.data("one", "b"))
}

func TestFeedbackOfAKindWithoutAnyIsSaid(t *testing.T) {
	s := newScene(t)
	s.start()
	s.create("feedback", []string{configMap("three", "a", "1")}, func(w *workv1.ManifestWork) {
		w.Spec.ManifestConfigs = []workv1.ManifestConfigOption{{
			ResourceIdentifier: workv1.ResourceIdentifier{Resource: "configmaps", Namespace: "*", Name: "*"},
			FeedbackRules:      []workv1.FeedbackRule{{Type: workv1.FeedbackRuleTypeWellKnownStatus}},
		}}
	})
	work := s.ready("feedback")
	require.Equal(t, metav1.ConditionFalse, condition(work, 0, "StatusFeedbackSynced").Status)
}
