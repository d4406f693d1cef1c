// SPDX-License-Identifier: Apache-2.0

package work

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

var ignoreTimes = cmpopts.IgnoreFields(metav1.Condition{}, "LastTransitionTime")

func TestACreatedWorkIsAppliedAndAvailable(t *testing.T) {
	s := newScene(t)
	s.start()
	s.create("web", []string{configMap("one", "a", "b")}, func(w *workv1.ManifestWork) { w.Labels = map[string]string{"team": "shop"} })
	work := s.ready("web")

	require.Empty(t, cmp.Diff(workv1.ManifestWorkStatus{
		Conditions: []metav1.Condition{
			{
				Type:               "Applied",
				Status:             "True",
				Reason:             "AppliedManifestWorkComplete",
				Message:            "Apply manifest work complete",
				ObservedGeneration: 1,
			},
			{
				Type:               "Available",
				Status:             "True",
				Reason:             "ResourcesAvailable",
				Message:            "All resources are available",
				ObservedGeneration: 1,
			},
		},
		ResourceStatus: workv1.ManifestResourceStatus{Manifests: []workv1.ManifestCondition{{
			ResourceMeta: workv1.ManifestResourceMeta{Version: "v1", Kind: "ConfigMap", Resource: "configmaps", Name: "one", Namespace: s.namespace},
			Conditions: []metav1.Condition{
				{
					Type:               "Applied",
					Status:             "True",
					Reason:             "AppliedManifestComplete",
					Message:            "Apply manifest complete",
					ObservedGeneration: 1,
				},
				{Type: "Available", Status: "True", Reason: "ResourceAvailable", Message: "Resource is available"},
				{Type: "StatusFeedbackSynced", Status: "True", Reason: "NoStatusFeedbackSynced"},
			},
		}}},
	}, work.Status, ignoreTimes))
	require.Equal(t, []string{"cluster.open-cluster-management.io/manifest-work-cleanup"}, work.Finalizers)

	object := s.get(configMaps, "one")
	// The hub may learn of the work before the identity of its object is recorded.
	var applied *workv1.AppliedManifestWork
	s.eventually(func() bool { applied = s.applied("web"); return len(applied.Status.AppliedResources) > 0 }, "nothing is recorded")
	require.Equal(t, []string{"cluster.open-cluster-management.io/applied-manifest-work-cleanup"}, applied.Finalizers)
	require.Equal(t, map[string]string{"team": "shop"}, applied.Labels)
	require.Equal(t, workv1.AppliedManifestWorkSpec{HubHash: s.config.HubHash, AgentID: s.config.AgentID, ManifestWorkName: "web"}, applied.Spec)
	require.Equal(t, []workv1.AppliedManifestResourceMeta{{Version: "v1", Resource: "configmaps", Namespace: s.namespace, Name: "one", UID: object.GetUID()}},
		applied.Status.AppliedResources)
	require.Equal(t, []metav1.OwnerReference{
		{APIVersion: "work.open-cluster-management.io/v1", Kind: "AppliedManifestWork", Name: applied.Name, UID: applied.UID},
	},
		object.GetOwnerReferences())
	require.Equal(t, "work-agent", object.GetManagedFields()[0].Manager)
	require.Len(t, object.GetManagedFields(), 1)
}

func TestDeliveringAWorkTakesThreeWritesOnTheHub(t *testing.T) {
	s := newScene(t)
	s.start()
	s.create("warm", []string{configMap("warm", "a", "b")})
	s.ready("warm")
	s.sealed("warm") // the last write of a work comes after its status
	s.rests()
	s.create("web", []string{configMap("one", "a", "b"), configMap("two", "a", "b")})
	s.ready("web")
	s.sealed("web")
	sent := s.untilRest(calm)
	require.Len(t, writes(sent, "hub"), 2, "the create was ours, finalizer and status are the agent's: %v", sent)
	require.Len(t, writes(sent, "spoke"), 2+3, "a write each object, the AppliedManifestWork with its list, the record afterwards, the digest: %v", sent)
}

func TestAWorkIsAppliedBeforeItsDigestIsRecorded(t *testing.T) {
	s := newScene(t)
	s.config.SealAfter = time.Hour
	s.start()
	s.create("web", []string{configMap("one", "a", "b"), configMap("two", "a", "b")})
	s.ready("web")
	sent := s.untilRest(calm)
	require.Len(t, writes(sent, "spoke"), 2+2, "a write each object, the AppliedManifestWork with its list, the record afterwards: %v", sent)
	record := s.applied("web")
	require.Empty(t, record.Annotations[workv1.AnnotationAppliedDigest])
	require.Contains(t, record.Annotations[workv1.AnnotationIntent], `"name":"two"`)

	s.update("web", s.manifests(configMap("one", "a", "c"), configMap("two", "a", "b")))
	s.ready("web")
	s.sealed("web")
	sent = s.untilRest(calm)
	require.Len(t, writes(sent, "spoke"), 1+1, "the object that changed, and digest and generation in one: %v", sent)
	require.NotContains(t, s.applied("web").Annotations, workv1.AnnotationIntent)
}

func TestAnUpdateReplacesAndPrunes(t *testing.T) {
	s := newScene(t)
	s.start()
	s.create("web", []string{configMap("one", "a", "1"), configMap("two", "a", "1"), configMap("three", "a", "1")})
	s.ready("web")
	s.update("web", s.manifests(configMap("two", "b", "2"), configMap("four", "a", "1")))
	work := s.ready("web")
	s.eventually(func() bool { return s.data("one", "a") == "-" && s.data("three", "a") == "-" }, "dropped objects are still there")
	require.Equal(t, "2", s.data("two", "b"))
	require.Empty(t, s.data("two", "a"), "a key that the manifest dropped must go")
	require.Equal(t, "1", s.data("four", "a"))
	require.Len(t, work.Status.ResourceStatus.Manifests, 2)
	s.eventually(func() bool {
		var names []string
		for _, r := range s.applied("web").Status.AppliedResources {
			names = append(names, r.Name)
		}
		return slices.Equal([]string{"four", "two"}, names)
	}, "what was dropped is still recorded")
}

func TestOneFailingManifestHarmsNoOther(t *testing.T) {
	s := newScene(t)
	s.start()
	missing := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"lost","namespace":"nowhere-NS"}}`
	s.create("web", []string{configMap("one", "a", "1"), missing, configMap("two", "a", "1")})
	work := s.settled("web", "Applied", metav1.ConditionFalse)
	s.settled("web", "Available", metav1.ConditionFalse)
	require.Equal(t, "1", s.data("one", "a"))
	require.Equal(t, "1", s.data("two", "a"))
	require.Equal(t, metav1.ConditionTrue, condition(work, 0, "Applied").Status)
	require.Equal(t, metav1.ConditionTrue, condition(work, 2, "Applied").Status)
	failed := condition(work, 1, "Applied")
	require.Equal(t, "AppliedManifestFailed", failed.Reason)
	require.Equal(t, `Failed to apply manifest: namespaces "nowhere-`+s.namespace+`" not found; create the namespace, or declare it in the work`, failed.Message)
	require.Equal(t, "Resource is not available", condition(work, 1, "Available").Message)

	apply(t, s.spoke, namespaces, "", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"nowhere-`+s.namespace+`"}}`)
	s.settled("web", "Applied", metav1.ConditionTrue)
}

func TestADeletedWorkTakesItsObjectsAlong(t *testing.T) {
	s := newScene(t)
	s.start()
	s.create("web", []string{configMap("one", "a", "1"), configMap("two", "a", "1")})
	s.ready("web")
	s.remove("web")
	s.gone("web")
	require.Equal(t, "-", s.data("one", "a"))
	require.Equal(t, "-", s.data("two", "a"))
}

func TestAWorkMayBeDeletedBeforeItWasApplied(t *testing.T) {
	s := newScene(t)
	s.create("web", []string{configMap("one", "a", "1")}, func(w *workv1.ManifestWork) { w.Finalizers = []string{workv1.FinalizerManifestWork} })
	s.remove("web")
	s.start()
	s.gone("web")
	require.Equal(t, "-", s.data("one", "a"))
}

// nextSecond waits until a transition gets a later time than that of c: times in a status
// are whole seconds.
func (s *scene) nextSecond(c metav1.Condition) {
	s.t.Helper()
	s.eventually(func() bool { return time.Since(c.LastTransitionTime.Time) > 1100*millisecond }, "time does not advance")
}

func TestANewGenerationMovesTheTransitionTimeOfApplied(t *testing.T) {
	s := newScene(t)
	s.start()
	s.create("web", []string{configMap("one", "a", "1")})
	before := s.ready("web")
	s.nextSecond(condition(before, 0, "Applied"))
	s.update("web", s.manifests(configMap("one", "a", "2")))
	after := s.ready("web")
	require.True(t, condition(after, 0, "Applied").LastTransitionTime.After(condition(before, 0, "Applied").LastTransitionTime.Time))
	require.Equal(t, condition(before, 0, "Available").LastTransitionTime, condition(after, 0, "Available").LastTransitionTime)
	last := after.Status.ResourceStatus.Manifests[0].Conditions
	require.Equal(t, "Applied", last[len(last)-1].Type)
}

func TestAClusterScopedManifestLosesItsNamespace(t *testing.T) {
	s := newScene(t)
	s.start()
	name := "role-" + s.namespace
	s.create("web", []string{`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"` + name + `","namespace":"NS"},"rules":[]}`})
	work := s.ready("web")
	require.Empty(t, work.Status.ResourceStatus.Manifests[0].ResourceMeta.Namespace)
	require.NotNil(t, s.getIn(clusterRoles, "", name))
	s.remove("web")
	s.gone("web")
	require.Nil(t, s.getIn(clusterRoles, "", name))
}

const (
	account = `{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"NAME","namespace":"NS"}}`
	role    = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"reader","namespace":"NS"},
		"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]}`
	binding = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"name":"reader","namespace":"NS"},
		"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"ROLE"},"subjects":[{"kind":"ServiceAccount","name":"web","namespace":"NS"}]}`
	deployment = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"NS","creationTimestamp":null},"spec":{"replicas":1,
		"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"},"creationTimestamp":null},
		"spec":{"serviceAccountName":"web","containers":[{"name":"web","image":"web:1","ports":[{"containerPort":80}]}]}}},"status":{}}`
)

func TestConditionsStayWithTheirObjectsWhenManifestsChangePlaces(t *testing.T) {
	s := newScene(t)
	s.start()
	first, second := replace(account, "NAME", "web"), replace(account, "NAME", "other")
	bound := replace(binding, "ROLE", "reader")
	s.create("web", []string{first, role, bound, deployment})
	before := s.ready("web")
	require.NotNil(t, s.get(deployments, "web"))
	s.nextSecond(condition(before, 0, "Available"))
	s.update("web", s.manifests(deployment, second, bound, role))
	after := s.ready("web")
	require.Equal(
		t, condition(before, 3, "Available").LastTransitionTime, condition(after, 0, "Available").LastTransitionTime,
		"the Deployment kept its condition",
	)
	require.True(
		t,
		condition(after, 1, "Available").LastTransitionTime.After(condition(before, 0, "Available").LastTransitionTime.Time),
		"the new account has a new one",
	)
	s.eventually(func() bool { return s.get(serviceAccounts, "web") == nil }, "the old account was not pruned")
	require.NotNil(t, s.get(serviceAccounts, "other"))
}

func TestARefusedChangeLeavesTheObjectAvailable(t *testing.T) {
	s := newScene(t)
	s.start()
	s.create("web", []string{role, replace(binding, "ROLE", "reader")})
	s.ready("web")
	s.update("web", s.manifests(role, replace(binding, "ROLE", "writer")))
	work := s.settled("web", "Applied", metav1.ConditionFalse)
	s.settled("web", "Available", metav1.ConditionTrue)
	require.Contains(t, condition(work, 1, "Applied").Message, "cannot change roleRef; such a field cannot be changed on an object that exists")
	require.Equal(t, metav1.ConditionTrue, condition(work, 0, "Applied").Status)
}
