// SPDX-License-Identifier: Apache-2.0

package work

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

var pods = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

// withFeedback adds an entry of manifestConfigs with feedback rules. The resource is
// "deployments.apps" or "configmaps"; name and namespace may have wildcards.
func withFeedback(resource, namespace, name string, rules ...workv1.FeedbackRule) change {
	return func(w *workv1.ManifestWork) {
		gr := schema.ParseGroupResource(resource)
		w.Spec.ManifestConfigs = append(w.Spec.ManifestConfigs, workv1.ManifestConfigOption{
			ResourceIdentifier: workv1.ResourceIdentifier{Group: gr.Group, Resource: gr.Resource, Namespace: namespace, Name: name},
			FeedbackRules:      rules,
		})
	}
}

var wellKnown = workv1.FeedbackRule{Type: workv1.FeedbackRuleTypeWellKnownStatus}

// jsonPaths returns a rule of alternating names and paths.
func jsonPaths(pairs ...string) workv1.FeedbackRule {
	rule := workv1.FeedbackRule{Type: workv1.FeedbackRuleTypeJSONPaths}
	for i := 0; i+1 < len(pairs); i += 2 {
		rule.JSONPaths = append(rule.JSONPaths, workv1.JSONPath{Name: pairs[i], Path: pairs[i+1]})
	}
	return rule
}

// values returns the feedback values of one manifest as "name=value", in their order.
func values(work *workv1.ManifestWork, ordinal int) []string {
	if ordinal >= len(work.Status.ResourceStatus.Manifests) {
		return nil
	}
	var out []string
	for _, v := range work.Status.ResourceStatus.Manifests[ordinal].StatusFeedback.Values {
		f := v.FieldValue
		switch {
		case f.Integer != nil:
			out = append(out, fmt.Sprintf("%s=%d", v.Name, *f.Integer))
		case f.Boolean != nil:
			out = append(out, fmt.Sprintf("%s=%t", v.Name, *f.Boolean))
		case f.String != nil:
			out = append(out, v.Name+"="+*f.String)
		case f.JSONRaw != nil:
			out = append(out, v.Name+"~"+*f.JSONRaw)
		}
	}
	return out
}

// awaitValues waits until one manifest has these feedback values.
func (s *scene) awaitValues(name string, ordinal int, want ...string) *workv1.ManifestWork {
	s.t.Helper()
	var work *workv1.ManifestWork
	s.eventually(func() bool {
		work = s.work(name)
		return slices.Equal(values(work, ordinal), want)
	}, "manifest %d of work %s does not tell %v: %s", ordinal, name, want, dump(&work))
	return work
}

// gets counts the requests that read one ConfigMap.
func (s *scene) gets(sent []string, name string) int {
	n := 0
	for _, r := range sent {
		if r == "spoke GET /api/v1/namespaces/"+s.namespace+"/configmaps/"+name {
			n++
		}
	}
	return n
}

func synced(work *workv1.ManifestWork, ordinal int) string {
	c := condition(work, ordinal, "StatusFeedbackSynced")
	return string(c.Status) + " " + c.Reason
}

// kubelet sets the status of all pods with a label, as a kubelet would.
func (s *scene) kubelet(label, phase, ready string) {
	s.t.Helper()
	s.eventually(func() bool {
		list, err := s.spoke.Resource(pods).Namespace(s.namespace).List(context.Background(), metav1.ListOptions{LabelSelector: label})
		require.NoError(s.t, err)
		for _, p := range list.Items {
			body := fmt.Sprintf(`{"status":{"phase":%q,"conditions":[{"type":"Ready","status":%q,"lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`, phase, ready)
			_, err := s.spoke.Resource(pods).Namespace(s.namespace).Patch(
				context.Background(), p.GetName(), types.MergePatchType, []byte(body), metav1.PatchOptions{},
				"status",
			)
			require.NoError(s.t, err)
		}
		return len(list.Items) > 0
	}, "there is no pod with %s", label)
}

const (
	podSpec       = `{"metadata":{"labels":{"app":"NAME"}},"spec":{"restartPolicy":"RESTART","containers":[{"name":"c","image":"none"}]}}`
	webDeployment = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"NAME","namespace":"NS"},
		"spec":{"replicas":2,"selector":{"matchLabels":{"app":"NAME"}},"template":` + podSpec + `}}`
	daemonSet = `{"apiVersion":"apps/v1","kind":"DaemonSet","metadata":{"name":"NAME","namespace":"NS"},
		"spec":{"selector":{"matchLabels":{"app":"NAME"}},"template":` + podSpec + `}}`
	job = `{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"NAME","namespace":"NS"},"spec":{"template":` + podSpec + `}}`
	pod = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"NAME","namespace":"NS","labels":{"app":"NAME"}},
		"spec":{"containers":[{"name":"c","image":"none"}]}}`
)

// called sets the name and the restart policy of a manifest.
func called(manifest, name string) string {
	restart := "Always"
	if manifest == job {
		restart = "Never"
	}
	return replace(replace(manifest, "NAME", name), "RESTART", restart)
}

func TestWellKnownValuesArePushed(t *testing.T) {
	s := newScene(t)
	s.start()
	s.create("web", []string{called(webDeployment, "web"), called(daemonSet, "set"), called(job, "job"), called(pod, "pod"), replace(account, "NAME", "sa")},
		withFeedback("deployments.apps", "*", "*", wellKnown), withFeedback("daemonsets.apps", "*", "*", wellKnown), withFeedback("jobs.batch", "*", "*", wellKnown),
		withFeedback("pods", "*", "*", wellKnown), withFeedback("serviceaccounts", "*", "*", wellKnown))
	s.ready("web")
	s.awaitValues("web", 0, "Replicas=2")
	s.awaitValues("web", 1, "NumberReady=0", "DesiredNumberScheduled=0")
	s.awaitValues("web", 3, "PodPhase=Pending")
	work := s.awaitValues("web", 4)
	require.Equal(t, "False StatusFeedbackSyncFailed", synced(work, 4))
	require.Contains(
		t, condition(work, 4, "StatusFeedbackSynced").Message,
		"Sync status feedback failed with error cannot find the wellknown statuses for resource with gvk /v1, Kind=ServiceAccount",
	)
	for i := range 4 {
		require.Equal(t, "True StatusFeedbackSynced", synced(work, i))
	}

	s.kubelet("app=web", "Running", "True")
	s.kubelet("app=pod", "Running", "True")
	s.kubelet("app=job", "Succeeded", "False")
	s.awaitValues("web", 0, "ReadyReplicas=2", "Replicas=2", "AvailableReplicas=2")
	s.awaitValues("web", 2, "JobComplete=True", "JobSucceeded=1")
	s.awaitValues("web", 3, "PodReady=True", "PodPhase=Running")
}

func TestPollAndWatchBothPush(t *testing.T) {
	for _, scrape := range []workv1.FeedbackScrapeType{workv1.FeedbackScrapeTypePoll, workv1.FeedbackScrapeTypeWatch} {
		t.Run(string(scrape), func(t *testing.T) {
			s := newScene(t)
			s.start()
			s.create("web", []string{configMap("one", "a", "1"), configMap("two", "a", "1")}, withFeedback(
				"configmaps", "*", "*", jsonPaths("theirs", ".data.theirs", "a", ".data.a"),
			),
				func(w *workv1.ManifestWork) { w.Spec.ManifestConfigs[0].FeedbackScrapeType = scrape })
			s.ready("web")
			before := s.awaitValues("web", 0, "a=1")
			s.rests()
			s.patch(configMaps, "one", `{"data":{"theirs":"2"}}`)
			after := s.awaitValues("web", 0, "theirs=2", "a=1")
			require.True(t, condition(before, 0, "StatusFeedbackSynced").LastTransitionTime.Time.Before(
				condition(after, 0, "StatusFeedbackSynced").LastTransitionTime.Time,
			),
				"new values restart the condition")
			for _, kind := range []string{"Applied", "Available"} {
				require.Equal(t, condition(before, 0, kind), condition(after, 0, kind))
			}
			require.Equal(t, condition(before, 1, "StatusFeedbackSynced"), condition(after, 1, "StatusFeedbackSynced"))

			s.rests()
			s.patch(configMaps, "one", `{"metadata":{"labels":{"l":"1"}}}`)
			s.eventually(func() bool { return s.gets(s.sent.Take(), "one") > 0 }, "a change is not looked at")
			require.Empty(t, s.untilRest(calm), "a change of other fields sends nothing")
			require.Equal(t, after.ResourceVersion, s.work("web").ResourceVersion)
		})
	}
}

func TestAChangeIsExactlyOneGetAndOnePatch(t *testing.T) {
	s := newScene(t)
	s.start()
	s.create("web", []string{configMap("one", "a", "1"), configMap("two", "a", "1")}, withFeedback("configmaps", "*", "one", jsonPaths("theirs", ".data.theirs")))
	s.ready("web")
	s.rests()
	s.patch(configMaps, "one", `{"data":{"theirs":"2"}}`)
	s.awaitValues("web", 0, "theirs=2")
	require.Equal(t, []string{
		"spoke GET /api/v1/namespaces/" + s.namespace + "/configmaps/one",
		"hub PATCH /apis/work.open-cluster-management.io/v1/namespaces/" + s.cluster + "/manifestworks/web/status",
	}, s.untilRest(calm))

	s.patch(configMaps, "two", `{"data":{"theirs":"2"}}`)
	s.never(func() bool { return len(s.sent.Take()) > 0 }, second, "of the other object nothing is asked")
}

func TestValuesThatAreThereAtOnceCostNoWriteMore(t *testing.T) {
	s := newScene(t)
	s.start()
	s.create("web", []string{configMap("one", "a", "1")}, withFeedback("configmaps", "*", "one", jsonPaths("a", ".data.a", "uid", ".metadata.uid")))
	s.ready("web")
	s.awaitValues("web", 0, "a=1", "uid="+string(s.get(configMaps, "one").GetUID()))
	sent := s.untilRest(calm)
	require.Len(t, writes(sent, "hub"), 2, "finalizer and status")
	require.Equal(t, 1, s.gets(sent, "one"), "what the write answered is read")
}

func TestAnObjectThatChangesAllTheTimeIsReadTwiceASecond(t *testing.T) {
	s := newScene(t)
	s.start()
	s.create("web", []string{configMap("one", "a", "1")}, withFeedback("configmaps", "*", "*", jsonPaths("theirs", ".data.theirs")))
	s.ready("web")
	s.rests()
	begin := time.Now()
	for i := range 60 {
		s.patch(configMaps, "one", fmt.Sprintf(`{"data":{"theirs":"%d"}}`, i))
	}
	s.awaitValues("web", 0, "theirs=59")
	require.LessOrEqual(t, s.gets(s.sent.Take(), "one"), 1+int(2*time.Since(begin).Seconds()))
	require.Empty(t, condition(s.work("web"), 0, "Applied").Message[len(workv1.MessageManifestApplied):], "a read is no repair")
}

func TestWhatChangesAtTheSameTimeIsToldInOneWrite(t *testing.T) {
	s := newScene(t)
	s.start()
	var manifests, want []string
	for i := range 40 {
		manifests = append(manifests, configMap(fmt.Sprintf("one-%d", i), "a", "1"))
	}
	s.create("web", manifests, withFeedback("configmaps", "*", "*", jsonPaths("theirs", ".data.theirs")))
	s.ready("web")
	s.rests()
	begin := time.Now()
	for i := range manifests {
		s.patch(configMaps, fmt.Sprintf("one-%d", i), `{"data":{"theirs":"1"}}`)
		want = append(want, "theirs=1")
	}
	s.eventually(func() bool {
		work := s.work("web")
		var told []string
		for i := range manifests {
			told = append(told, values(work, i)...)
		}
		return slices.Equal(want, told)
	}, "not all values are told")
	require.LessOrEqual(t, len(writes(s.sent.Take(), "hub")), 1+int(2*time.Since(begin).Seconds()))
}

func TestPathsThatCannotBeReadLeaveTheOthers(t *testing.T) {
	s := newScene(t)
	s.start()
	s.create(
		"web", []string{configMap("one", "a", "1")},
		withFeedback("configmaps", "*", "*", jsonPaths("good", ".data.a", "none", ".data.b", "map", ".data", "bad", "data")),
	)
	s.ready("web")
	work := s.awaitValues("web", 0, "good=1")
	require.Equal(t, "False StatusFeedbackSyncFailed", synced(work, 0))
	message := condition(work, 0, "StatusFeedbackSynced").Message
	require.Contains(t, message, `the path ".data" of the value "map": it leads to a map`)
	require.Contains(t, message, `the path "data" of the value "bad"`)
	require.NotContains(t, message, `"none"`)
	require.Equal(t, metav1.ConditionTrue, condition(work, 0, "Applied").Status)

	s.update("web", func(w *workv1.ManifestWork) {
		w.Spec.ManifestConfigs[0].FeedbackRules = []workv1.FeedbackRule{jsonPaths("good", ".data.a"), jsonPaths("good", ".kind")}
	})
	s.eventually(func() bool {
		return strings.Contains(condition(s.work("web"), 0, "StatusFeedbackSynced").Message, `the name "good" is given to two values, the first is reported`)
	}, "two values with one name are not reported")
	s.awaitValues("web", 0, "good=1")

	s.update("web", func(w *workv1.ManifestWork) {
		w.Spec.ManifestConfigs[0].FeedbackRules = []workv1.FeedbackRule{jsonPaths("version", ".data.a", "good", ".data.a")}
		w.Spec.ManifestConfigs[0].FeedbackRules[0].JSONPaths[0].Version = "v2"
	})
	s.eventually(func() bool {
		return strings.Contains(condition(s.work("web"), 0, "StatusFeedbackSynced").Message, `the path ".data.a" is for version "v2" and the object has version v1`)
	}, "another version is not reported")

	s.update("web", func(w *workv1.ManifestWork) { w.Spec.ManifestConfigs = nil })
	work = s.awaitValues("web", 0)
	require.Equal(t, "True NoStatusFeedbackSynced", synced(work, 0))
}

func TestStructuresNeedTheirGate(t *testing.T) {
	s := newScene(t)
	stop := s.start()
	s.create("web", []string{configMap("one", "a", "1", "b", "2")}, withFeedback("configmaps", "*", "*", jsonPaths("map", ".data", "all", ".data.*")))
	s.ready("web")
	work := s.awaitValues("web", 0, "all=1")
	require.Contains(t, condition(work, 0, "StatusFeedbackSynced").Message, "enable the feature gate RawFeedbackJsonString of the work agent")

	stop()
	s.config.Feedback.RawJSON = true
	s.start()
	work = s.awaitValues("web", 0, `map~{"a":"1","b":"2"}`, `all~["1","2"]`)
	require.Equal(t, "True StatusFeedbackSynced", synced(work, 0))

	s.update("web", s.manifests(configMap("one", "a", strings.Repeat("x", 1100))), func(w *workv1.ManifestWork) {
		w.Spec.ManifestConfigs[0].FeedbackRules = []workv1.FeedbackRule{jsonPaths("map", ".data", "kind", ".kind")}
	})
	work = s.awaitValues("web", 0, "kind=ConfigMap")
	require.Contains(t, condition(work, 0, "StatusFeedbackSynced").Message, "as JSON it has more than 1024 bytes")
}

func TestTheFirstConfigWithRulesCounts(t *testing.T) {
	s := newScene(t)
	s.start()
	s.create("web", []string{configMap("cm-a", "a", "1"), configMap("other", "a", "1")},
		strategy("*", workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeCreateOnly}),
		withFeedback("configmaps", "ns-*", "cm-*", jsonPaths("first", ".data.a")), withFeedback("configmaps", "*", "*", jsonPaths("second", ".data.a")),
		withFeedback("configmaps", "*", "cm-a", jsonPaths("third", ".data.a")))
	s.ready("web")
	s.awaitValues("web", 0, "first=1")
	s.awaitValues("web", 1, "second=1")
	s.update("web", s.manifests(configMap("cm-a", "a", "2"), configMap("other", "a", "1")))
	s.ready("web")
	require.Equal(t, "1", s.data("cm-a", "a"), "the strategy of the entry without rules holds")
}

func TestAHostilePathHarmsNothing(t *testing.T) {
	s := newScene(t)
	s.start()
	many := func(of string) string { return "[" + strings.Repeat(of+",", 29) + of + "]" }
	s.create("web", []string{called(webDeployment, "web"), configMap("one", "a", "1")},
		withFeedback("deployments.apps", "*", "*", jsonPaths("hostile", many("'metadata'")+many("'managedFields'")+many("0"), "name", ".metadata.name")))
	s.ready("web")
	work := s.awaitValues("web", 0, "name=web")
	require.Contains(t, condition(work, 0, "StatusFeedbackSynced").Message, "name the way to the value instead of searching for it")
}

func TestOfASecretOnlyTheNamedValueIsTold(t *testing.T) {
	s := newScene(t)
	s.config.Feedback.RawJSON = true
	s.start()
	s.create("web", []string{`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s","namespace":"NS"},"data":{"user":"Ym9i","password":"aHVudGVyMg=="}}`},
		withFeedback("secrets", "*", "*", jsonPaths("user", ".data.user", "all", ".data", "each", ".data.*")))
	s.ready("web")
	work := s.awaitValues("web", 0, "user=Ym9i")
	require.Contains(t, condition(work, 0, "StatusFeedbackSynced").Message, "of a Secret only single values are given")
	require.NotContains(t, dump(&work).String(), "aHVudGVyMg==")
}

func TestAnObjectOfOthersIsToldWhenItComesChangesAndGoes(t *testing.T) {
	s := newScene(t)
	s.start()
	s.create("web", []string{configMap("theirs"), configMap("ours", "a", "1")}, strategy("theirs", workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeReadOnly}),
		withFeedback("configmaps", "*", "theirs", jsonPaths("a", ".data.a")))
	s.settled("web", "Available", metav1.ConditionFalse)
	apply(t, s.spoke, configMaps, s.namespace, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"theirs"},"data":{"a":"1"}}`)
	s.awaitValues("web", 0, "a=1")
	s.ready("web")
	s.rests()
	s.patch(configMaps, "theirs", `{"data":{"a":"2"}}`)
	s.awaitValues("web", 0, "a=2")
	require.NoError(t, s.spoke.Resource(configMaps).Namespace(s.namespace).Delete(context.Background(), "theirs", metav1.DeleteOptions{}))
	work := s.settled("web", "Available", metav1.ConditionFalse)
	require.Equal(t, "ResourceNotAvailable", condition(work, 0, "Available").Reason)
	require.Equal(t, []string{"a=2"}, values(work, 0), "what was told stays")
	apply(t, s.spoke, configMaps, s.namespace, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"theirs"},"data":{"a":"3"}}`)
	s.awaitValues("web", 0, "a=3")
	s.ready("web")
}

func TestValuesOfANamespaceArePushed(t *testing.T) {
	s := newScene(t)
	s.start()
	name := s.namespace + "-more"
	s.create("web", []string{fmt.Sprintf(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q}}`, name)},
		withFeedback("namespaces", "", name, jsonPaths("phase", ".status.phase", "note", `.metadata.annotations.example\.com/note`)))
	s.ready("web")
	s.awaitValues("web", 0, "phase=Active")
	s.rests()
	_, err := s.spoke.Resource(namespaces).Patch(
		context.Background(), name, types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"example.com/note":"hello"}}}`), metav1.PatchOptions{},
	)
	require.NoError(t, err)
	s.awaitValues("web", 0, "phase=Active", "note=hello")
	s.remove("web")
	s.gone("web")
}

func TestValuesAfterTheAgentOrTheHubWasAway(t *testing.T) {
	s := newScene(t)
	stop := s.start()
	s.create("web", []string{configMap("one", "a", "1"), configMap("two", "a", "1")}, withFeedback("configmaps", "*", "*", jsonPaths("theirs", ".data.theirs")))
	s.ready("web")
	s.patch(configMaps, "two", `{"data":{"theirs":"1"}}`)
	before := s.awaitValues("web", 1, "theirs=1")
	s.rests()
	stop()
	s.sent.Take()
	s.start()
	s.rests()
	require.Equal(t, before.ResourceVersion, s.work("web").ResourceVersion, "values that are the same are not written again")

	s.sent.Cut("hub")
	s.patch(configMaps, "one", `{"data":{"theirs":"2"}}`)
	s.eventually(func() bool {
		return slices.Contains(s.sent.Take(), "hub PATCH /apis/work.open-cluster-management.io/v1/namespaces/"+s.cluster+"/manifestworks/web/status")
	}, "the value is not sent")
	s.patch(configMaps, "two", `{"data":{"theirs":"2"}}`)
	s.sent.Fail(nil)
	s.awaitValues("web", 0, "theirs=2")
	s.awaitValues("web", 1, "theirs=2")
}

func TestValuesThatSomebodyTakesOffTheHubComeBack(t *testing.T) {
	s := newScene(t)
	s.start()
	s.create("web", []string{configMap("one", "a", "1")}, withFeedback("configmaps", "*", "*", jsonPaths("a", ".data.a")))
	s.ready("web")
	s.awaitValues("web", 0, "a=1")
	for _, body := range []string{
		`[{"op":"remove","path":"/status/resourceStatus/manifests/0/statusFeedback"}]`,
		`[{"op":"replace","path":"/status/resourceStatus/manifests/0/statusFeedback/values/0/fieldValue/string","value":"x"}]`,
	} {
		_, err := s.hub.Resource(works).Namespace(s.cluster).Patch(context.Background(), "web", types.JSONPatchType, []byte(body), metav1.PatchOptions{}, "status")
		require.NoError(t, err)
		s.awaitValues("web", 0, "a=1")
	}
}

func TestAnObjectThatCannotBeReadChangesAvailableAlone(t *testing.T) {
	s := newScene(t)
	s.start()
	s.create("web", []string{configMap("one", "a", "1")}, withFeedback("configmaps", "*", "*", jsonPaths("a", ".data.a", "theirs", ".data.theirs")))
	s.ready("web")
	before := s.awaitValues("web", 0, "a=1")
	s.rests()
	s.sent.Fail(func(_ string, r *http.Request) error {
		if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/configmaps/one") {
			return fmt.Errorf("no route")
		}
		return nil
	})
	s.patch(configMaps, "one", `{"data":{"theirs":"1"}}`)
	work := s.settled("web", "Available", metav1.ConditionUnknown)
	require.Equal(t, "FetchingResourceFailed", condition(work, 0, "Available").Reason)
	for _, kind := range []string{"Applied", "StatusFeedbackSynced"} {
		require.Equal(t, condition(before, 0, kind), condition(work, 0, kind))
	}
	require.Equal(t, []string{"a=1"}, values(work, 0))
	s.sent.Fail(nil)
	s.awaitValues("web", 0, "a=1", "theirs=1")
	s.settled("web", "Available", metav1.ConditionTrue)
}

func TestValuesFollowTheirManifestAndANewObject(t *testing.T) {
	s := newScene(t)
	s.start()
	s.create(
		"web", []string{configMap("one", "a", "1"), configMap("two", "a", "2")},
		withFeedback("configmaps", "*", "*", jsonPaths("a", ".data.a", "uid", ".metadata.uid")),
	)
	s.ready("web")
	one, two := "uid="+string(s.get(configMaps, "one").GetUID()), "uid="+string(s.get(configMaps, "two").GetUID())
	s.awaitValues("web", 0, "a=1", one)
	s.update("web", s.manifests(configMap("two", "a", "2"), configMap("one", "a", "1")))
	s.ready("web")
	s.awaitValues("web", 0, "a=2", two)
	s.awaitValues("web", 1, "a=1", one)
	require.NoError(t, s.spoke.Resource(configMaps).Namespace(s.namespace).Delete(context.Background(), "one", metav1.DeleteOptions{}))
	s.eventually(func() bool { u := s.get(configMaps, "one"); return u != nil && "uid="+string(u.GetUID()) != one }, "it did not come back")
	s.awaitValues("web", 1, "a=1", "uid="+string(s.get(configMaps, "one").GetUID()))
}
