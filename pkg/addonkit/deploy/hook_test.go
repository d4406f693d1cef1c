// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

func sorted(list []string) []string {
	slices.SortFunc(list, func(a, b string) int {
		rank := func(s string) int {
			return slices.IndexFunc([]string{"patch", "create", "delete", "finalizers", ""}, func(p string) bool { return len(s) >= len(p) && s[:len(p)] == p })
		}
		return rank(a) - rank(b)
	})
	return list
}

var (
	jobDone   = map[string]string{"JobComplete": "True"}
	jobFailed = map[string]string{"JobComplete": "False", "JobFailed": "True"}
	podDone   = map[string]string{"PodPhase": "Succeeded"}
)

func TestWhatIsAHook(t *testing.T) {
	s := state(t, "Job a hook", "Pod b hooklabel", "ConfigMap c hook", "Job d oldhook", "Deployment e hooklabel", "Job f")
	require.Equal(t, []string{"create c1/addon-web-deploy-0: c d e f", "finalizers addon-pre-delete"}, run(t, &s))
	s.Manifests = s.Manifests[2:]
	require.Equal(t, []string{"finalizers "}, run(t, &s), "without hooks there is nothing to wait for")
}

func TestHookOnTheManagedCluster(t *testing.T) {
	s := state(t, "ConfigMap a", "Job clean hook", "Pod p hook")
	run(t, &s)
	require.Len(t, s.Works, 1, "no hook runs while the instance stays")
	deleted(&s)
	require.Equal(t, []string{"create c1/addon-web-pre-delete: clean p"}, run(t, &s))
	w := s.Works[1]
	require.Empty(t, w.Annotations)
	require.Len(t, w.OwnerReferences, 1)
	require.Equal(t, []workv1.ManifestConfigOption{
		{
			ResourceIdentifier: workv1.ResourceIdentifier{Group: "batch", Resource: "jobs", Namespace: "default", Name: "clean"},
			FeedbackRules: []workv1.FeedbackRule{
				{
					Type: "WellKnownStatus",
				}, {
					Type:      "JSONPaths",
					JSONPaths: []workv1.JSONPath{{Name: "JobFailed", Path: `.status.conditions[?(@.type=="Failed")].status`}},
				},
			},
		},
		{
			ResourceIdentifier: workv1.ResourceIdentifier{Resource: "pods", Namespace: "default", Name: "p"},
			FeedbackRules:      []workv1.FeedbackRule{{Type: "WellKnownStatus"}},
		},
	}, w.Spec.ManifestConfigs)
	require.Equal(t, "False HookManifestIsNotCompleted: hook manifest is not completed: Job default/clean of cluster c1 has not completed; "+
		"Pod default/p of cluster c1 has not completed; it is given up at 2030-01-02T03:30:00Z", condition(s.AddOn, hookCompleted))

	report(t, &s, "c1/addon-web-pre-delete", metav1.ConditionTrue, jobDone)
	require.Empty(t, run(t, &s), "the pod has not completed")
	report(t, &s, "c1/addon-web-pre-delete", metav1.ConditionFalse, map[string]string{"JobComplete": "True", "PodPhase": "Succeeded"})
	require.Empty(t, run(t, &s))
	require.Contains(t, condition(s.AddOn, hookCompleted), "manifestwork c1/addon-web-pre-delete is not available")
	s.Manifests[0] = object(t, "ConfigMap a x=y")
	require.Equal(t, []string{"patch c1/addon-web-deploy-0: a"}, run(t, &s), "what is deployed is kept current")

	report(t, &s, "c1/addon-web-pre-delete", metav1.ConditionTrue, map[string]string{"JobComplete": "True", "PodPhase": "Succeeded"})
	require.Equal(t, []string{"finalizers "}, run(t, &s))
	require.Equal(t, "True HookManifestIsCompleted: hook manifestWork addon-web-pre-delete is completed.", condition(s.AddOn, hookCompleted))
	require.Len(t, s.Works, 2, "works go with their owner")
}

func TestHookOnTheHostingCluster(t *testing.T) {
	s := hosted(state(t, "ConfigMap a location=hosting", "Pod p hook location=hosting", "Job never hook location=none"))
	run(t, &s)
	deleted(&s)
	require.Equal(t, []string{"create h1/addon-web-pre-delete-hosting-c1: p"}, run(t, &s))
	require.Equal(t, "c1", s.Works[1].Labels["open-cluster-management.io/addon-namespace"])
	report(t, &s, "h1/addon-web-pre-delete-hosting-c1", metav1.ConditionTrue, podDone)

	p := Decide(s)
	require.Empty(t, outline(t, p), "the condition is written first")
	s.AddOn = p.Object.(*addonv1alpha1.ManagedClusterAddOn)
	require.Equal(t, "True HookManifestIsCompleted: hook manifestWork addon-web-pre-delete-hosting-c1 is completed.", condition(s.AddOn, hookCompleted))

	// The process ends after the work was deleted and before the finalizer was.
	again := s
	carryOut(t, &again, Decide(again))
	require.NotContains(t, run(t, &again), "create h1/addon-web-pre-delete-hosting-c1: p", "a hook that ran is not made again")

	require.Equal(
		t,
		[]string{"delete h1/addon-web-pre-delete-hosting-c1", "delete h1/addon-web-deploy-hosting-c1-0", "finalizers hosting-manifests-cleanup", "finalizers "},
		run(t, &s),
	)
	require.Empty(t, s.Works)
}

func TestHooksOnBothClustersDoNotWaitForEachOther(t *testing.T) {
	s := hosted(state(t, "Job here hook", "Job there hook location=hosting"))
	run(t, &s)
	deleted(&s)
	require.Equal(t, []string{"create c1/addon-web-pre-delete: here", "create h1/addon-web-pre-delete-hosting-c1: there"}, run(t, &s))
	report(t, &s, "c1/addon-web-pre-delete", metav1.ConditionTrue, jobDone)
	require.Equal(t, []string{"finalizers hosting-addon-pre-delete hosting-manifests-cleanup"}, run(t, &s))
	require.Contains(t, condition(s.AddOn, hookCompleted), "False HookManifestIsNotCompleted: hook manifest is not completed: Job default/there of cluster h1")
	report(t, &s, "h1/addon-web-pre-delete-hosting-c1", metav1.ConditionTrue, jobDone)
	run(t, &s)
	require.Empty(t, s.AddOn.Finalizers)
}

func TestAHookThatDoesNotComplete(t *testing.T) {
	blockers := map[string]struct {
		change func(*testing.T, *State)
		want   string
		again  time.Duration
	}{
		"it failed": {func(t *testing.T, s *State) {
			report(t, s, "c1/addon-web-pre-delete", metav1.ConditionTrue, jobFailed)
		}, "Job default/clean of cluster c1 failed; delete it there to run it again", 30 * time.Minute},
		"its cluster is away": {
			func(_ *testing.T, s *State) {
				s.Cluster.Status.Conditions = []metav1.Condition{{Type: clusterv1.ConditionAvailable, Status: metav1.ConditionUnknown}}
			},
			"Job default/clean of cluster c1 has not completed; cluster c1 is not reachable",
			30 * time.Minute,
		},
		"it cannot be rendered": {func(_ *testing.T, s *State) { s.RenderError = errors.New("no such value") },
			"its hooks cannot be rendered: no such value", 30 * time.Second},
	}
	for name, tc := range blockers {
		t.Run(name, func(t *testing.T) {
			s := state(t, "Job clean hook")
			run(t, &s)
			deleted(&s)
			run(t, &s)
			tc.change(t, &s)
			require.Empty(t, run(t, &s))
			require.Equal(
				t,
				"False HookManifestIsNotCompleted: hook manifest is not completed: "+tc.want+"; it is given up at 2030-01-02T03:30:00Z",
				condition(s.AddOn, hookCompleted),
			)
			require.Equal(t, tc.again, Decide(s).RequeueAfter)

			s.Now = start.Add(30 * time.Minute)
			s.Options.HookDeadline = -1
			require.Empty(t, run(t, &s), "without a deadline it waits on")
			s.Options.HookDeadline = 0
			require.Equal(t, []string{"Warning HookAbandoned: The add-on is removed although its hooks did not complete: " + tc.want, "finalizers "}, run(t, &s))
			require.Equal(t, "False HookManifestIsNotCompleted: hook manifest is given up: "+tc.want, condition(s.AddOn, hookCompleted))
		})
	}
}

func TestClustersThatVanishHoldUpNoDeletion(t *testing.T) {
	s := hosted(state(t, "ConfigMap a location=hosting", "Job here hook", "Job there hook location=hosting"))
	run(t, &s)
	deleted(&s)
	run(t, &s)
	managed := s
	managed.Cluster = nil
	require.Equal(t, []string{
		"delete h1/addon-web-deploy-hosting-c1-0", "delete h1/addon-web-pre-delete-hosting-c1",
		"Warning HookAbandoned: The add-on is removed although its hooks did not complete: there is no ManagedCluster c1", "finalizers ",
	}, run(t, &managed))

	s.Hosting.Cluster = nil
	require.Equal(
		t,
		[]string{"delete h1/addon-web-pre-delete-hosting-c1", "finalizers addon-pre-delete hosting-manifests-cleanup"},
		run(t, &s), "the hook here still runs",
	)
	report(t, &s, "c1/addon-web-pre-delete", metav1.ConditionTrue, jobDone)
	require.Equal(t, []string{"delete h1/addon-web-deploy-hosting-c1-0", "finalizers "}, run(t, &s))
}

func TestAHostingClusterThatDoesNotRemoveWhatItHas(t *testing.T) {
	s := hosted(state(t, "ConfigMap a location=hosting"))
	run(t, &s)
	deleted(&s)
	require.Equal(t, []string{"delete h1/addon-web-deploy-hosting-c1-0"}, outline(t, Decide(s)))
	s.Works[0].DeletionTimestamp = &metav1.Time{Time: start}
	require.Empty(t, run(t, &s))
	require.Equal(t, "False HostingManifestsRemaining: waiting until these are removed: manifestwork "+
		"h1/addon-web-deploy-hosting-c1-0; it is given up at 2030-01-02T03:30:00Z",
		condition(s.AddOn, hostingApplied))
	require.Equal(t, 30*time.Minute, Decide(s).RequeueAfter)
	s.Now = start.Add(time.Hour)
	require.Equal(
		t,
		[]string{"Warning HookAbandoned: Hosting cluster h1 has not removed manifestwork h1/addon-web-deploy-hosting-c1-0", "finalizers "},
		run(t, &s),
	)
}

func TestAHookOfAnEarlierInstanceIsNotTakenForThisOne(t *testing.T) {
	s := state(t, "Job clean hook")
	run(t, &s)
	deleted(&s)
	run(t, &s)
	report(t, &s, "c1/addon-web-pre-delete", metav1.ConditionTrue, jobDone)
	s.AddOn.UID = "another"
	require.Equal(t, []string{"delete c1/addon-web-pre-delete", "create c1/addon-web-pre-delete: clean"}, run(t, &s))
	require.Len(t, s.AddOn.Finalizers, 1)

	alive := state(t, "Job clean hook")
	alive.Works = s.Works
	alive.AddOn.Status.Conditions = append(alive.AddOn.Status.Conditions, metav1.Condition{Type: hookCompleted, Status: metav1.ConditionTrue})
	require.Equal(t, []string{"delete c1/addon-web-pre-delete", "finalizers addon-pre-delete"}, run(t, &alive))
	require.Empty(t, condition(alive.AddOn, hookCompleted))
}

func TestAnInstanceWithoutHooksGoesAtOnce(t *testing.T) {
	s := state(t, "ConfigMap a")
	run(t, &s)
	deleted(&s)
	require.Empty(t, run(t, &s))
	require.Empty(t, s.AddOn.Finalizers)
	require.Len(t, s.Works, 1, "its works go with it")
}
