// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

const (
	manifestApplied = addonv1alpha1.ConditionManifestApplied
	hostingApplied  = addonv1alpha1.ConditionHostingManifestApplied
	hostingValid    = addonv1alpha1.ConditionHostingClusterValidity
	hookCompleted   = addonv1alpha1.ConditionHookManifestCompleted
)

func TestGatesBeforeDeployment(t *testing.T) {
	gone := metav1.NewTime(start)
	for name, tc := range map[string]struct {
		change func(*State)
		want   []string
	}{
		"registration was looked at, whatever came of it": {func(*State) {}, []string{"create c1/addon-web-deploy-0: a"}},
		"registration was not looked at":                  {func(s *State) { s.AddOn.Status.Conditions = nil }, nil},
		"there is no cluster":                             {func(s *State) { s.Cluster = nil }, nil},
		"the cluster is being deleted":                    {func(s *State) { s.Cluster.DeletionTimestamp = &gone }, nil},
		"configurations are waited for":                   {func(s *State) { s.Options.WaitConfigured = true }, nil},
		"configurations have come": {
			func(s *State) {
				s.Options.WaitConfigured = true
				s.AddOn.Status.Conditions = append(s.AddOn.Status.Conditions, metav1.Condition{Type: addonv1alpha1.ConditionConfigured, Status: metav1.ConditionTrue})
			},
			[]string{"create c1/addon-web-deploy-0: a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := state(t, "ConfigMap a")
			tc.change(&s)
			require.Equal(t, tc.want, run(t, &s))
		})
	}
}

func TestAClusterThatGoesKeepsItsWorks(t *testing.T) {
	s := state(t, "ConfigMap a")
	run(t, &s)
	s.Cluster = s.Cluster.DeepCopy()
	s.Cluster.DeletionTimestamp = &metav1.Time{Time: start}
	s.Manifests = nil
	require.Empty(t, run(t, &s))
	require.Len(t, s.Works, 1)
}

func TestWhatAWorkLooksLike(t *testing.T) {
	s := state(t, "ConfigMap a", "ConfigMap b orphan")
	s.Mark = `{"a":"b"}`
	s.Configs = []workv1.ManifestConfigOption{{ResourceIdentifier: workv1.ResourceIdentifier{Resource: "configmaps", Name: "*"}}}
	require.Equal(t, []string{"create c1/addon-web-deploy-0: a b"}, run(t, &s))
	w := s.Works[0]
	yes := true
	require.Equal(t, []metav1.OwnerReference{{
		APIVersion: "addon.open-cluster-management.io/v1beta1", Kind: "ManagedClusterAddOn", Name: "web", UID: "u", Controller: &yes, BlockOwnerDeletion: &yes,
	}}, w.OwnerReferences)
	require.Equal(t, map[string]string{"open-cluster-management.io/addon-name": "web"}, w.Labels)
	require.Equal(t, map[string]string{"open-cluster-management.io/config-spec-hash": `{"a":"b"}`}, w.Annotations)
	require.Equal(t, s.Configs, w.Spec.ManifestConfigs)
	require.NotContains(t, string(w.Spec.Workload.Manifests[0].Raw), "creationTimestamp")
	require.Equal(t, &workv1.DeleteOption{
		PropagationPolicy:  "SelectivelyOrphan",
		SelectivelyOrphans: &workv1.SelectivelyOrphans{OrphaningRules: []workv1.OrphaningRule{{Resource: "configmaps", Namespace: "default", Name: "b"}}},
	}, w.Spec.DeleteOption)

	// The form that the API server stores, with defaults and null times, counts as equal.
	w.Spec.ManifestConfigs[0].FeedbackScrapeType = workv1.FeedbackScrapeTypePoll
	w.Spec.Workload.Manifests[0].Raw = []byte(
		`{"kind":"ConfigMap","metadata":{"creationTimestamp":null,"namespace":"default","name":"a","labels":{},"annotations":{}},"apiVersion":"v1"}`,
	)
	require.Empty(t, run(t, &s))
}

func TestAWorkThatIsToldToLeaveItsObjectsStaysSo(t *testing.T) {
	s := state(t, "ConfigMap a")
	require.NotEmpty(t, run(t, &s))
	w := s.Works[0]
	w.Annotations = map[string]string{workv1.AnnotationKept: "{}"}
	w.Spec.DeleteOption = &workv1.DeleteOption{PropagationPolicy: workv1.DeletePropagationPolicyTypeOrphan}
	w.OwnerReferences = nil
	require.Empty(t, run(t, &s))
	w.Annotations = nil
	require.NotEmpty(t, run(t, &s))
}

func TestChangesOfAWork(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*testing.T, *State)
		check  func(*testing.T, *workv1.ManifestWork)
	}{
		"a manifest": {
			func(t *testing.T, s *State) { s.Manifests[0] = object(t, "ConfigMap a x=y") },
			func(t *testing.T, w *workv1.ManifestWork) {
				require.Contains(t, string(w.Spec.Workload.Manifests[0].Raw), `"x":"y"`)
			},
		},
		"the mark goes": {
			func(_ *testing.T, s *State) { s.Mark = "" },
			func(t *testing.T, w *workv1.ManifestWork) { require.Empty(t, w.Annotations) },
		},
		"a configuration goes": {
			func(_ *testing.T, s *State) { s.Configs = nil },
			func(t *testing.T, w *workv1.ManifestWork) { require.Empty(t, w.Spec.ManifestConfigs) },
		},
		"nothing is left behind any more": {
			func(t *testing.T, s *State) { s.Manifests[0] = object(t, "ConfigMap a") },
			func(t *testing.T, w *workv1.ManifestWork) { require.Nil(t, w.Spec.DeleteOption) },
		},
		"the owner is an earlier instance": {
			func(_ *testing.T, s *State) { s.Works[0].OwnerReferences[0].UID = "before" },
			func(t *testing.T, w *workv1.ManifestWork) {
				require.Len(t, w.OwnerReferences, 1)
				require.EqualValues(t, "u", w.OwnerReferences[0].UID)
			},
		},
		"a label": {
			func(_ *testing.T, s *State) { s.Works[0].Labels = map[string]string{"theirs": "x"} },
			func(t *testing.T, w *workv1.ManifestWork) {
				require.Equal(t, map[string]string{"theirs": "x", "open-cluster-management.io/addon-name": "web"}, w.Labels)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := state(t, "ConfigMap a orphan")
			s.Mark = "m"
			s.Configs = []workv1.ManifestConfigOption{{ResourceIdentifier: workv1.ResourceIdentifier{Resource: "x", Name: "y"}}}
			run(t, &s)
			tc.change(t, &s)
			require.Equal(t, []string{"patch c1/addon-web-deploy-0: a"}, run(t, &s))
			tc.check(t, s.Works[0])
		})
	}
}

func TestWhatOthersPutIntoAWorkIsTheirs(t *testing.T) {
	s := state(t, "ConfigMap a")
	run(t, &s)
	w := s.Works[0]
	w.Labels["theirs"], w.Annotations = "x", map[string]string{"theirs": "x"}
	w.Spec.Executor = &workv1.ManifestWorkExecutor{}
	w.OwnerReferences = append(w.OwnerReferences, metav1.OwnerReference{Kind: "Other", Name: "o"})
	require.Empty(t, run(t, &s))
	other := w.DeepCopy()
	other.Name = "addon-web-deploy-own"
	s.Works = append(s.Works, other)
	require.Empty(t, run(t, &s), "a work of another name is not touched")
}

func TestManifestApplied(t *testing.T) {
	s := state(t)
	run(t, &s)
	require.Equal(t, "True AddonManifestApplied: no manifest need to apply", condition(s.AddOn, manifestApplied))

	s = state(t, "ConfigMap a")
	run(t, &s)
	require.Empty(t, condition(s.AddOn, manifestApplied), "nothing has been reported yet")
	report(t, &s, "c1/addon-web-deploy-0", metav1.ConditionFalse, nil)
	run(t, &s)
	require.Equal(t, "False AddonManifestAppliedFailed: failed to apply the manifests of addon", condition(s.AddOn, manifestApplied))
	s.Works[0].Status.Conditions = nil
	run(t, &s)
	require.Empty(t, condition(s.AddOn, manifestApplied), "a failure does not stand when the work says nothing")
	report(t, &s, "c1/addon-web-deploy-0", metav1.ConditionTrue, nil)
	run(t, &s)
	require.Equal(t, "True AddonManifestApplied: manifests of addon are applied successfully", condition(s.AddOn, manifestApplied))
	s.Manifests[0] = object(t, "ConfigMap a x=y")
	run(t, &s)
	require.Equal(
		t, "True AddonManifestApplied: manifests of addon are applied successfully",
		condition(s.AddOn, manifestApplied), "what was said stands until the agent answers",
	)
	s.Works[0].Status.Conditions[0].ObservedGeneration, s.Works[0].Status.Conditions[0].Status = 1, metav1.ConditionFalse
	run(t, &s)
	require.Contains(t, condition(s.AddOn, manifestApplied), "True", "an answer about what was before is none")
}

func TestARenderErrorLeavesWhatRuns(t *testing.T) {
	s := state(t, "ConfigMap a", "Job clean hook")
	run(t, &s)
	s.RenderError = errors.New("values.yaml: line 3")
	require.Empty(t, run(t, &s))
	require.Equal(t, "False ManifestWorkApplyFailed: values.yaml: line 3", condition(s.AddOn, manifestApplied))
	_, _, err := s.Inspected()
	require.ErrorIs(t, err, s.RenderError, "nothing new is known of its health")
	require.Len(t, s.AddOn.Finalizers, 1)
	require.Len(t, s.Works, 1)
	require.Equal(t, 30*time.Second, Decide(s).RequeueAfter, "it is asked again")
	require.Equal(t, "ManifestWorkApplyFailed", Decide(s).Object.(*addonv1alpha1.ManagedClusterAddOn).Status.Conditions[1].Reason)
}

func TestAFailedWriteIsToldInTheCondition(t *testing.T) {
	s := state(t, "ConfigMap a")
	p := Decide(s)
	require.Equal(t, manifestApplied, p.OnFailure.Type)
	require.Equal(t, "ManifestWorkApplyFailed", p.OnFailure.Reason)
}

func TestConditionsTellTheirGenerationAndTime(t *testing.T) {
	s := state(t)
	s.AddOn.Generation = 7
	run(t, &s)
	c := s.AddOn.Status.Conditions[1]
	require.EqualValues(t, 7, c.ObservedGeneration)
	require.True(t, c.LastTransitionTime.Time.Equal(start))
}

func TestHostedMode(t *testing.T) {
	s := hosted(state(t, "ConfigMap here", "ConfigMap there location=hosting", "ConfigMap nowhere location=none", "ConfigMap also location=managed"))
	require.Equal(t, []string{
		"create c1/addon-web-deploy-0: here also", "create h1/addon-web-deploy-hosting-c1-0: there", "finalizers hosting-manifests-cleanup",
	}, run(t, &s))
	w := s.Works[1]
	require.Empty(t, w.OwnerReferences)
	require.Equal(t, map[string]string{"open-cluster-management.io/addon-name": "web", "open-cluster-management.io/addon-namespace": "c1"}, w.Labels)
	require.Equal(t, "True HostingClusterValid: hosting cluster h1 is a managed cluster of the hub", condition(s.AddOn, hostingValid))
	report(t, &s, "h1/addon-web-deploy-hosting-c1-0", metav1.ConditionTrue, nil)
	require.Empty(t, run(t, &s))
	require.Equal(t, "True AddonManifestApplied: manifests of addon are applied successfully", condition(s.AddOn, hostingApplied))
	manifests, works, err := s.Inspected()
	require.NoError(t, err)
	require.Len(t, manifests, 1)
	require.Equal(t, "there", manifests[0].Name)
	require.Equal(t, []*workv1.ManifestWork{s.Works[1]}, works)
}

func TestAClusterThatHostsItself(t *testing.T) {
	s := hosted(state(t, "ConfigMap a location=hosting"))
	s.Hosting.Name, s.Hosting.Cluster.Name = "c1", "c1"
	run(t, &s)
	require.Equal(t, "addon-web-deploy-hosting-c1-0", s.Works[0].Name)
	require.Len(t, s.Works[0].OwnerReferences, 1)
	require.Equal(t, map[string]string{"open-cluster-management.io/addon-name": "web"}, s.Works[0].Labels)
	require.Empty(t, run(t, &s))
}

func TestWithoutAHostingClusterAllIsForTheManagedOne(t *testing.T) {
	s := state(t, "ConfigMap a location=hosting", "ConfigMap b location=none", "ConfigMap c location=nonsense")
	require.Equal(t, []string{"create c1/addon-web-deploy-0: a b c"}, run(t, &s))
	require.Empty(t, condition(s.AddOn, hostingValid))
}

func TestAnUnknownLocation(t *testing.T) {
	s := hosted(state(t, "ConfigMap a location=moon"))
	require.Empty(t, run(t, &s))
	for _, kind := range []string{manifestApplied, hostingApplied} {
		require.Equal(t, `False ManifestWorkApplyFailed: ConfigMap default/a: annotation `+
			`addon.open-cluster-management.io/hosted-manifest-location: "moon" is not a location; use managed, `+
			`hosting or none`,
			condition(s.AddOn, kind))
	}
}

func TestAHostingClusterThatIsNoneOfThisHub(t *testing.T) {
	gone := metav1.NewTime(start)
	const fix = ", or change annotation addon.open-cluster-management.io/hosting-cluster-name"
	for name, tc := range map[string]struct {
		change func(*State)
		want   string
	}{
		"unknown": {
			func(s *State) { s.Hosting.Cluster = nil },
			"there is no ManagedCluster with this name; join it under this name",
		},
		"deleting": {
			func(s *State) { s.Hosting.Cluster.DeletionTimestamp = &gone },
			"it is being deleted; join it again when it is gone",
		},
		"no name": {func(s *State) { s.Hosting = &Hosting{} }, "its name is empty; name one"},
	} {
		t.Run(name, func(t *testing.T) {
			s := hosted(state(t, "ConfigMap here", "ConfigMap there location=hosting", "Job clean hook location=hosting"))
			run(t, &s)
			require.Len(t, s.AddOn.Finalizers, 2)
			tc.change(&s)
			require.Equal(t, []string{"delete h1/addon-web-deploy-hosting-c1-0", "finalizers "}, run(t, &s))
			require.Equal(
				t,
				"False HostingClusterInvalid: hosting cluster "+s.Hosting.Name+" is not a managed cluster of the hub: "+tc.want+fix,
				condition(s.AddOn, hostingValid),
			)
			require.Empty(t, condition(s.AddOn, hostingApplied))
			require.Equal(t, "c1", s.Works[0].Namespace, "the managed cluster keeps its own")
		})
	}
}

// TestAHostingClusterThatIsNotAccepted: acceptance is revoked and restored.
func TestAHostingClusterThatIsNotAccepted(t *testing.T) {
	const said = "False HostingClusterInvalid: hosting cluster h1 is not a managed cluster of the hub: it is not accepted, and what it has stays as it is; " +
		"accept it, or change annotation addon.open-cluster-management.io/hosting-cluster-name"
	s := hosted(state(t, "ConfigMap here", "ConfigMap there location=hosting", "Job clean hook location=hosting"))
	s.Hosting.Cluster.Spec.HubAcceptsClient = false
	require.Equal(t, []string{"create c1/addon-web-deploy-0: here"}, run(t, &s), "it gets nothing, and the managed cluster its own")
	require.Equal(t, said, condition(s.AddOn, hostingValid))
	require.Empty(t, s.AddOn.Finalizers, "there is nothing to wait for")
	gone := s
	deleted(&gone)
	require.Empty(t, run(t, &gone))

	s.Hosting.Cluster = accepted("h1")
	require.Equal(t, []string{"create h1/addon-web-deploy-hosting-c1-0: there", "finalizers hosting-addon-pre-delete hosting-manifests-cleanup"}, run(t, &s))
	require.Contains(t, condition(s.AddOn, hostingValid), "True HostingClusterValid")
	s.Hosting.Cluster = accepted("h1")
	s.Hosting.Cluster.Spec.HubAcceptsClient = false
	s.Manifests[1] = object(t, "ConfigMap there location=hosting x=y")
	require.Empty(t, run(t, &s), "what it has stays as it is")
	require.Equal(t, said, condition(s.AddOn, hostingValid))
	require.Len(t, s.AddOn.Finalizers, 2)

	deleted(&s)
	require.Equal(t, []string{"create h1/addon-web-pre-delete-hosting-c1: clean"}, run(t, &s))
	require.Equal(t, "False HookManifestIsNotCompleted: hook manifest is not completed: Job default/clean of cluster h1 has not completed; "+
		"cluster h1 is not accepted: an administrator has to accept it; it is given up at 2030-01-02T03:30:00Z", condition(s.AddOn, hookCompleted))
	s.AddOn.Finalizers = []string{addonv1alpha1.FinalizerHostingManifests}
	s.Works[1].DeletionTimestamp = &metav1.Time{Time: start}
	s.Works[1].Finalizers = []string{"agent"}
	p := Decide(s)
	require.Contains(
		t, condition(p.Object.(*addonv1alpha1.ManagedClusterAddOn), hostingApplied),
		"; cluster h1 is not accepted: an administrator has to accept it; it is given up at",
	)
	s.Now = start.Add(30 * time.Minute)
	run(t, &s)
	require.Empty(t, s.AddOn.Finalizers, "it holds up nothing for ever")
}

func TestChangesOfTheMode(t *testing.T) {
	s := hosted(state(t, "ConfigMap here", "ConfigMap there location=hosting"))
	run(t, &s)
	was := s.Hosting
	s.Hosting = &Hosting{Name: "h2", Cluster: accepted("h2")}
	require.Equal(
		t, []string{"create h2/addon-web-deploy-hosting-c1-0: there", "delete h1/addon-web-deploy-hosting-c1-0"},
		run(t, &s), "another hosting cluster cleans the one before",
	)
	s.Hosting = nil
	require.Equal(t, []string{"patch c1/addon-web-deploy-0: here there", "delete h2/addon-web-deploy-hosting-c1-0", "finalizers "}, run(t, &s))
	require.Empty(t, condition(s.AddOn, hostingValid))
	require.Empty(t, condition(s.AddOn, hostingApplied))
	s.Hosting = was
	require.Equal(
		t,
		[]string{"patch c1/addon-web-deploy-0: here", "create h1/addon-web-deploy-hosting-c1-0: there", "finalizers hosting-manifests-cleanup"},
		sorted(run(t, &s)),
	)
}

func TestFinalizersOfEarlierVersionsGo(t *testing.T) {
	s := state(t)
	s.AddOn.Finalizers = []string{
		"cluster.open-cluster-management.io/addon-pre-delete", "cluster.open-cluster-management.io/hosting-addon-pre-delete",
		"cluster.open-cluster-management.io/hosting-manifests-cleanup", "theirs",
	}
	stale := s
	run(t, &s)
	require.Equal(t, []string{"theirs"}, s.AddOn.Finalizers)
	deleted(&stale)
	run(t, &stale)
	require.Equal(t, []string{"theirs"}, stale.AddOn.Finalizers)
}

func TestDeadline(t *testing.T) {
	s := state(t)
	_, ok := s.deadline()
	require.False(t, ok, "one that stays has none")
	deleted(&s)
	for name, tc := range map[string]struct {
		option     time.Duration
		annotation string
		want       time.Duration
	}{
		"the default":               {0, "", 30 * time.Minute},
		"the author's":              {time.Hour, "", time.Hour},
		"the user's":                {time.Hour, "0s", 0},
		"the user's is no duration": {time.Hour, "soon", time.Hour},
		"for ever":                  {-1, "", -1},
		"for ever, by the user":     {time.Hour, "-1s", -1},
		"not for ever, by the user": {-1, "5m", 5 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			s.Options.HookDeadline = tc.option
			s.AddOn.Annotations = map[string]string{addonv1alpha1.AnnotationHookDeadline: tc.annotation}
			at, ok := s.deadline()
			require.Equal(t, tc.want >= 0, ok)
			if ok {
				require.Equal(t, tc.want, at.Sub(start))
			}
		})
	}
}
