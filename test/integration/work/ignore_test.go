// SPDX-License-Identifier: Apache-2.0

package work

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

const hash = "open-cluster-management.io/config-spec-hash"

// scaled returns a Deployment of one container with two variables.
func scaled(replicas int, image, a string) string {
	return fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"NS"},"spec":{"replicas":%d,
		"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},
		"spec":{"containers":[{"name":"web","image":%q,"env":[{"name":"A","value":%q},{"name":"B","value":"b"}]}]}}}}`, replicas, image, a)
}

// ignoring gives Deployments server-side apply with ignored fields.
func ignoring(fields ...workv1.IgnoreField) change {
	u := serverSide("", true, fields...)
	return func(w *workv1.ManifestWork) {
		w.Spec.ManifestConfigs = []workv1.ManifestConfigOption{{
			ResourceIdentifier: workv1.ResourceIdentifier{Group: "apps", Resource: "deployments", Namespace: "*", Name: "*"},
			UpdateStrategy:     &u,
		}}
	}
}

func onPresent(paths ...string) workv1.IgnoreField {
	return workv1.IgnoreField{Condition: workv1.IgnoreFieldsConditionOnSpokePresent, JSONPaths: paths}
}

func onChange(paths ...string) workv1.IgnoreField {
	return workv1.IgnoreField{Condition: workv1.IgnoreFieldsConditionOnSpokeChange, JSONPaths: paths}
}

// deployed returns "replicas image A B" of the Deployment.
func (s *scene) deployed() string {
	s.t.Helper()
	u := s.get(deployments, "web")
	if u == nil {
		return "-"
	}
	replicas, _, _ := unstructured.NestedInt64(u.Object, "spec", "replicas")
	containers, _, _ := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
	web := containers[0].(map[string]any)
	out := []string{fmt.Sprint(replicas), fmt.Sprint(web["image"])}
	env, _ := web["env"].([]any)
	for _, e := range env {
		out = append(out, fmt.Sprint(e.(map[string]any)["name"], "=", e.(map[string]any)["value"]))
	}
	return strings.Join(out, " ")
}

// is waits until the Deployment is as wanted, and makes sure that it stays so until the
// agent has nothing left to do.
func (s *scene) is(want string) {
	s.t.Helper()
	s.eventually(func() bool { return s.deployed() == want }, "the Deployment is not %s", want)
	s.untilRest(1200 * millisecond)
	require.Equal(s.t, want, s.deployed())
}

// autoscale scales as a HorizontalPodAutoscaler does.
func (s *scene) autoscale(replicas int) {
	s.t.Helper()
	_, err := s.spoke.Resource(deployments).Namespace(s.namespace).Patch(context.Background(), "web", types.MergePatchType,
		fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas), metav1.PatchOptions{FieldManager: "kube-controller-manager"}, "scale")
	require.NoError(s.t, err)
}

// edit changes the first container as another user.
func (s *scene) edit(patch string) {
	s.t.Helper()
	_, err := s.spoke.Resource(deployments).Namespace(s.namespace).Patch(context.Background(), "web", types.StrategicMergePatchType,
		[]byte(`{"spec":{"template":{"spec":{"containers":[{"name":"web",`+patch+`}]}}}}`), metav1.PatchOptions{FieldManager: "somebody"})
	require.NoError(s.t, err)
}

func TestAnAutoscalerKeepsItsReplicasAndAllElseIsRepaired(t *testing.T) {
	s := newScene(t)
	stop := s.start()
	s.create("web", []string{scaled(2, "web:1", "a")}, ignoring(onPresent(".spec.replicas")))
	s.ready("web")
	s.is("2 web:1 A=a B=b")
	s.edit(`"image":"theirs"`)
	s.is("2 web:1 A=a B=b")
	require.Equal(t, "2 web:1 A=a B=b", s.deployed(), "a repair before the first scaling must not reset the field")

	s.autoscale(4)
	s.is("4 web:1 A=a B=b")
	generation := s.get(deployments, "web").GetGeneration()
	for i := 5; i < 8; i++ {
		s.autoscale(i)
	}
	s.is("7 web:1 A=a B=b")
	require.Equal(t, generation+3, s.get(deployments, "web").GetGeneration(), "only the autoscaler wrote the spec")
	s.edit(`"image":"theirs","env":[{"name":"A","value":"theirs"}]`)
	s.is("7 web:1 A=a B=b")

	s.update("web", s.manifests(scaled(2, "web:2", "a")))
	s.ready("web")
	s.is("7 web:2 A=a B=b")
	stop()
	s.edit(`"image":"theirs"`)
	s.autoscale(9)
	s.start()
	s.is("9 web:2 A=a B=b")

	s.update("web", s.manifests(strings.Replace(scaled(2, "web:3", "a"), `"replicas":2,`, "", 1)))
	s.ready("web")
	s.is("9 web:3 A=a B=b")
	require.NoError(t, s.spoke.Resource(deployments).Namespace(s.namespace).Delete(context.Background(), "web", metav1.DeleteOptions{}))
	s.is("1 web:3 A=a B=b")
	s.remove("web")
	s.gone("web")
	require.Nil(t, s.get(deployments, "web"))
}

func TestAnIgnoredFieldThatLeavesTheManifestKeepsItsValue(t *testing.T) {
	s := newScene(t)
	s.start()
	s.create("web", []string{scaled(3, "web:1", "a")}, ignoring(onPresent(".spec.replicas")))
	s.ready("web")
	s.update("web", s.manifests(strings.Replace(scaled(3, "web:2", "a"), `"replicas":3,`, "", 1)))
	s.ready("web")
	s.is("3 web:2 A=a B=b")
}

func TestAnObjectThatWasThereKeepsItsIgnoredFields(t *testing.T) {
	s := newScene(t)
	apply(t, s.spoke, deployments, s.namespace, replace(scaled(5, "web:0", "theirs"), "NS", s.namespace))
	s.start()
	s.create("web", []string{scaled(1, "web:1", "a")}, ignoring(onPresent(".spec.replicas", ".spec.template.spec.containers[0].env[0].value")))
	s.ready("web")
	s.is("5 web:1 A=theirs B=b")
}

func TestAnObjectOfAnEarlierAgentKeepsItsIgnoredFields(t *testing.T) {
	s := newScene(t)
	var old unstructured.Unstructured
	require.NoError(t, old.UnmarshalJSON([]byte(replace(scaled(5, "web:0", "old"), "NS", s.namespace))))
	_, err := s.spoke.Resource(deployments).Namespace(s.namespace).Create(context.Background(), &old, metav1.CreateOptions{FieldManager: "work-agent"})
	require.NoError(t, err)
	s.start()
	s.create("web", []string{scaled(1, "web:1", "a")}, ignoring(onPresent(".spec.replicas", ".spec.template.spec.containers[0].env[0].value")))
	s.ready("web")
	s.is("5 web:1 A=old B=b")
}

func TestAnEditStaysUntilTheManifestChanges(t *testing.T) {
	s := newScene(t)
	stop := s.start()
	s.create(
		"web", []string{scaled(1, "web:1", "a")},
		ignoring(onChange(".spec.replicas", `.spec.template.spec.containers[?(@.name=="web")].env[?(@.name=="A")].value`)),
	)
	s.ready("web")
	sum := s.get(deployments, "web").GetAnnotations()[hash]
	require.Len(t, sum, 64)
	s.edit(`"env":[{"name":"A","value":"theirs"}]`)
	s.autoscale(3)
	s.is("3 web:1 A=theirs B=b")
	s.edit(`"image":"theirs"`)
	s.is("3 web:1 A=theirs B=b")
	stop()
	s.edit(`"image":"theirs"`)
	s.start()
	s.is("3 web:1 A=theirs B=b")
	require.Equal(t, sum, s.get(deployments, "web").GetAnnotations()[hash])

	s.update("web", s.manifests(scaled(1, "web:2", "a")))
	s.ready("web")
	s.is("1 web:2 A=a B=b")
	require.NotEqual(t, sum, s.get(deployments, "web").GetAnnotations()[hash])
	s.edit(`"env":[{"name":"A","value":"again"}]`)
	s.is("1 web:2 A=again B=b")
	_, err := s.spoke.Resource(deployments).Namespace(s.namespace).Patch(context.Background(), "web", types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"`+hash+`":null}}}`), metav1.PatchOptions{FieldManager: "somebody"})
	require.NoError(t, err)
	s.is("1 web:2 A=a B=b")
}

func TestBothConditionsHoldTogether(t *testing.T) {
	s := newScene(t)
	s.start()
	s.create("web", []string{scaled(1, "web:1", "a")}, ignoring(
		workv1.IgnoreField{Condition: "OnSpokePresent", JSONPointers: []string{"/spec/replicas"}},
		workv1.IgnoreField{
			Condition:         "OnSpokeChange",
			JQPathExpressions: []string{`.spec.template.spec.containers[] | select(.name == "web") | .env[] | select(.name == "A") | .value`},
		}))
	s.ready("web")
	s.autoscale(3)
	s.edit(`"env":[{"name":"A","value":"theirs"}]`)
	s.is("3 web:1 A=theirs B=b")
	s.update("web", s.manifests(scaled(7, "web:1", "a")))
	s.ready("web")
	s.is("3 web:1 A=theirs B=b")
	s.update("web", s.manifests(scaled(7, "web:1", "new")))
	s.ready("web")
	s.is("3 web:1 A=new B=b")
}

func TestAnIgnoredElementOfAListIsLeftAlone(t *testing.T) {
	s := newScene(t)
	s.start()
	s.create("web", []string{scaled(1, "web:1", "a")}, ignoring(workv1.IgnoreField{
		Condition: "OnSpokePresent", JQPathExpressions: []string{`.spec.template.spec.containers[].env[] | select(.name == "A")`},
	}))
	s.ready("web")
	generation := s.get(deployments, "web").GetGeneration()
	s.update("web", s.manifests(scaled(1, "web:1", "changed")))
	s.ready("web")
	s.is("1 web:1 A=a B=b")
	require.Equal(t, generation, s.get(deployments, "web").GetGeneration(), "the order of the list was changed")
	s.edit(`"env":[{"name":"A","value":"theirs"}]`)
	s.is("1 web:1 A=theirs B=b")
	s.edit(`"env":[{"name":"B","value":"theirs"}]`)
	s.is("1 web:1 A=theirs B=b")
	s.edit(`"env":[{"$patch":"delete","name":"A"}]`)
	s.is("1 web:1 B=b")
}

func TestAnIgnoredFieldHasNoConflict(t *testing.T) {
	s := newScene(t)
	apply(t, s.spoke, deployments, s.namespace, replace(scaled(5, "web:1", "a"), "NS", s.namespace))
	s.start()
	s.create("web", []string{scaled(1, "web:1", "a")}, ignoring(onPresent(".spec.replicas")), func(w *workv1.ManifestWork) {
		w.Spec.ManifestConfigs[0].UpdateStrategy.ServerSideApply.Force = false
	})
	s.ready("web")
	s.is("5 web:1 A=a B=b")
	s.update("web", func(w *workv1.ManifestWork) {
		w.Spec.ManifestConfigs[0].UpdateStrategy.ServerSideApply.IgnoreFields = nil
	})
	work := s.settled("web", "Applied", metav1.ConditionFalse)
	require.Contains(t, condition(work, 0, "Applied").Message, `conflict with "test": .spec.replicas`)
}

func TestFieldsThatCannotBeIgnoredAreSaid(t *testing.T) {
	s := newScene(t)
	s.start()
	s.create("web", []string{scaled(1, "web:1", "a"), configMap("one", "a", "1")}, ignoring(workv1.IgnoreField{
		Condition: "OnSpokePresent", JQPathExpressions: []string{`.spec.replicas |`},
	}))
	work := s.settled("web", "Applied", metav1.ConditionFalse)
	require.Equal(t, "AppliedManifestSSAIgnoreFieldError", condition(work, 0, "Applied").Reason)
	require.Equal(t, `Failed to process ignoreFields: OnSpokePresent.jqPathExpressions[0] ".spec.replicas |": `+
		`at character 17: found the end instead of a path; correct the expression`,
		condition(work, 0, "Applied").Message)
	require.Nil(t, s.get(deployments, "web"), "what cannot be read in full is not applied")
	require.Equal(t, metav1.ConditionTrue, condition(work, 1, "Applied").Status, "one failing manifest harms no other")

	s.update("web", ignoring(workv1.IgnoreField{Condition: "OnSpokePresent", JQPathExpressions: []string{`.kind[]`}}))
	work = s.settled("web", "Applied", metav1.ConditionFalse)
	require.Equal(t, "AppliedManifestSSAIgnoreFieldError", condition(work, 0, "Applied").Reason)
	require.Contains(t, condition(work, 0, "Applied").Message, "a string has no elements; correct the path")
	s.rests()
	s.update("web", ignoring(onPresent(".spec.replicas")))
	s.ready("web")
}

func TestBelowAValueThatIsMergedAsOneIgnoredFieldsStay(t *testing.T) {
	s := newScene(t)
	s.start()
	grantWidgets(s)
	kind, definition := widgetDefinition(s)
	apply(t, s.spoke, definitions, "", replace(definition, `"size":{"type":"integer"}`,
		`"items":{"type":"array","items":{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}}}}`))
	gvr := definitionsOf(kind)
	widget := func(a, b int) string {
		return fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":%q,"metadata":{"name":"w","namespace":"NS"},"spec":{"items":[{"a":%d,"b":%d}]}}`, kind, a, b)
	}
	u := serverSide("", true, onPresent(".spec.items[*].a"))
	s.create("web", []string{widget(1, 1)}, func(w *workv1.ManifestWork) {
		w.Spec.ManifestConfigs = []workv1.ManifestConfigOption{{
			ResourceIdentifier: workv1.ResourceIdentifier{Group: "example.com", Resource: gvr.Resource, Namespace: "*", Name: "*"},
			UpdateStrategy:     &u,
		}}
	})
	s.ready("web")
	s.patch(gvr, "w", `{"spec":{"items":[{"a":7,"b":7}]}}`)
	s.eventually(func() bool { return fmt.Sprint(s.get(gvr, "w").Object["spec"]) == "map[items:[map[a:7 b:1]]]" }, "only b is repaired")
	s.update("web", s.manifests(widget(2, 2)))
	s.eventually(func() bool { return fmt.Sprint(s.get(gvr, "w").Object["spec"]) == "map[items:[map[a:7 b:2]]]" }, "only b follows the manifest")
	s.remove("web")
	s.gone("web")
}
