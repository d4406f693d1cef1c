// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
)

func TestSplitting(t *testing.T) {
	s := state(t, "ConfigMap a size=100000", "ConfigMap b size=300000", "ConfigMap c size=200000", "ConfigMap d size=1000")
	require.Equal(t, []string{"create c1/addon-web-deploy-0: b d", "create c1/addon-web-deploy-1: a c"}, run(t, &s),
		"the largest first, each to where most room is")
	require.Empty(t, run(t, &s))

	s.Manifests = append(s.Manifests, object(t, "ConfigMap e size=100000"))
	require.Equal(t, []string{"patch c1/addon-web-deploy-1: a c e"}, run(t, &s))
	s.Manifests = s.Manifests[2:4]
	require.Equal(t, []string{"patch c1/addon-web-deploy-0: d", "patch c1/addon-web-deploy-1: c"}, run(t, &s), "what stays does not move")
	s.Manifests = s.Manifests[:1]
	require.Equal(t, []string{"delete c1/addon-web-deploy-0"}, run(t, &s), "the empty work is deleted, the other stays")
	s.Manifests = append(s.Manifests, object(t, "ConfigMap f size=400000"))
	require.Equal(t, []string{"create c1/addon-web-deploy-0: f"}, run(t, &s), "an index that is free is used, one that is not is not")
	s.Manifests = nil
	require.Equal(t, []string{"delete c1/addon-web-deploy-0", "delete c1/addon-web-deploy-1"}, run(t, &s))
}

// TestNamesAreThoseOfAFreshAddOn: an add-on that is created again while works of the
// previous one are being deleted waits for them, and gets the names it would have without them.
func TestNamesAreThoseOfAFreshAddOn(t *testing.T) {
	s := state(t, "ConfigMap a", "ConfigMap b size=409600")
	run(t, &s)
	require.Len(t, s.Works, 2)
	for _, w := range s.Works {
		w.DeletionTimestamp = &metav1.Time{Time: start}
	}
	before := s.Works
	s = state(t, "ConfigMap c", "ConfigMap a")
	s.Works = before
	require.Empty(t, run(t, &s), "what is new waits too, also for names that are free")
	s.Works = before[:1]
	require.Empty(t, run(t, &s))
	s.Works = nil
	require.Equal(t, []string{"create c1/addon-web-deploy-0: c a"}, run(t, &s))

	s.Works = append(s.Works, before[1])
	s.Manifests = append(s.Manifests, object(t, "ConfigMap d"))
	require.Equal(t, []string{"patch c1/addon-web-deploy-0: c a d"}, run(t, &s), "what has room waits for nothing")
}

func TestTheBudgetIsExact(t *testing.T) {
	s := state(t, "ConfigMap a size=409000", "ConfigMap b size=600")
	require.Equal(t, []string{"create c1/addon-web-deploy-0: a b"}, run(t, &s))
	s = state(t, "ConfigMap a size=409000", "ConfigMap b size=601")
	require.Equal(t, []string{"create c1/addon-web-deploy-0: a", "create c1/addon-web-deploy-1: b"}, run(t, &s))
}

func TestManifestsThatGrow(t *testing.T) {
	s := state(t, "ConfigMap a size=200000", "ConfigMap b size=200000")
	run(t, &s)
	s.Manifests[1] = object(t, "ConfigMap b size=300000")
	require.Equal(t, []string{"patch c1/addon-web-deploy-0: a b"}, run(t, &s), "within what admission takes each stays")
	s.Manifests[0] = object(t, "ConfigMap a size=300000")
	require.Equal(t, []string{"create c1/addon-web-deploy-1: a", "patch c1/addon-web-deploy-0: b"}, run(t, &s))
	s.Manifests[0] = object(t, "ConfigMap a size=512001")
	require.Empty(t, run(t, &s))
	require.Equal(t, "False ManifestWorkApplyFailed: ConfigMap default/a: the manifest has 512001 bytes, more than "+
		"the 512000 that a ManifestWork may hold; make it smaller",
		condition(s.AddOn, manifestApplied))
}

func TestAWorkOfTheOldestNameIsKept(t *testing.T) {
	s := state(t, "ConfigMap a", "ConfigMap b")
	run(t, &s)
	s.Works[0].Name = "addon-web-deploy"
	require.Empty(t, run(t, &s))
	s.Manifests = append(s.Manifests, object(t, "ConfigMap c size=409600"))
	require.Equal(t, []string{"create c1/addon-web-deploy-0: c"}, run(t, &s))
}

func TestAWorkThatIsBeingDeletedIsWaitedFor(t *testing.T) {
	s := state(t, "ConfigMap a")
	run(t, &s)
	s.Works[0].DeletionTimestamp = &metav1.Time{Time: start}
	s.Manifests = append(s.Manifests, object(t, "ConfigMap b"))
	require.Empty(t, run(t, &s), "what is new waits for its name")
	s.Works = nil
	require.Equal(t, []string{"create c1/addon-web-deploy-0: a b"}, run(t, &s))
}

func TestEveryOrphanCountsInEveryWork(t *testing.T) {
	s := state(t, "ConfigMap a size=400000", "ConfigMap b size=400000 orphan")
	run(t, &s)
	require.Len(t, s.Works, 2)
	require.Equal(t, s.Works[0].Spec.DeleteOption, s.Works[1].Spec.DeleteOption)
	require.Equal(t, "b", s.Works[0].Spec.DeleteOption.SelectivelyOrphans.OrphaningRules[0].Name)
}

func TestMergeConfigs(t *testing.T) {
	web := workv1.ResourceIdentifier{Group: "apps", Resource: "deployments", Namespace: "default", Name: "web"}
	paths := func(list ...workv1.JSONPath) workv1.FeedbackRule {
		return workv1.FeedbackRule{Type: "JSONPaths", JSONPaths: list}
	}
	known := workv1.FeedbackRule{Type: "WellKnownStatus"}
	apply := &workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeServerSideApply}
	got := MergeConfigs(
		[]workv1.ManifestConfigOption{{ResourceIdentifier: web, FeedbackRules: []workv1.FeedbackRule{known, paths(workv1.JSONPath{Name: "x", Path: ".a"})},
			UpdateStrategy: &workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeCreateOnly}}},
		[]workv1.ManifestConfigOption{
			{
				ResourceIdentifier: web,
				UpdateStrategy:     apply,
				FeedbackScrapeType: "Watch",
				ConditionRules:     []workv1.ConditionRule{{Condition: "Complete"}},
				FeedbackRules:      []workv1.FeedbackRule{known, paths(workv1.JSONPath{Name: "x", Path: ".b"}, workv1.JSONPath{Name: "y", Path: ".c"})},
			},
			{ResourceIdentifier: workv1.ResourceIdentifier{Resource: "pods", Name: "*"}},
		})
	require.Empty(t, cmp.Diff([]workv1.ManifestConfigOption{
		{
			ResourceIdentifier: web,
			UpdateStrategy:     apply,
			FeedbackScrapeType: "Watch",
			ConditionRules:     []workv1.ConditionRule{{Condition: "Complete"}},
			FeedbackRules:      []workv1.FeedbackRule{known, paths(workv1.JSONPath{Name: "x", Path: ".b"}, workv1.JSONPath{Name: "y", Path: ".c"})},
		},
		{ResourceIdentifier: workv1.ResourceIdentifier{Resource: "pods", Name: "*"}},
	}, got))
}

func TestConfigsByPattern(t *testing.T) {
	at := func(namespace, name string) workv1.ResourceIdentifier {
		return workv1.ResourceIdentifier{Group: "apps", Resource: "deployments", Namespace: namespace, Name: name}
	}
	known := []workv1.FeedbackRule{{Type: "WellKnownStatus"}}
	apply := &workv1.UpdateStrategy{Type: workv1.UpdateStrategyTypeServerSideApply}
	require.Empty(t, cmp.Diff([]workv1.ManifestConfigOption{
		{ResourceIdentifier: at("n", "web"), FeedbackRules: known, UpdateStrategy: apply},
		{ResourceIdentifier: at("*", "*"), UpdateStrategy: apply},
	}, MergeConfigs(
		[]workv1.ManifestConfigOption{{ResourceIdentifier: at("n", "web"), FeedbackRules: known}},
		[]workv1.ManifestConfigOption{{ResourceIdentifier: at("*", "*"), UpdateStrategy: apply}},
	)), "an author's pattern counts for an object that health names")
	require.Empty(t, cmp.Diff([]workv1.ManifestConfigOption{
		{ResourceIdentifier: at("n", "web"), FeedbackRules: known, UpdateStrategy: apply},
		{ResourceIdentifier: at("n", "*"), FeedbackRules: known},
	}, MergeConfigs(
		[]workv1.ManifestConfigOption{{
			ResourceIdentifier: at("n", "*"),
			FeedbackRules:      known,
		}, {
			ResourceIdentifier: at("n", "*"),
			FeedbackRules:      known,
		}},
		[]workv1.ManifestConfigOption{{
			ResourceIdentifier: at("n", "web"),
			UpdateStrategy:     apply,
		}, {
			ResourceIdentifier: at("n", "web"),
		}},
	)), "what health names by a pattern hides nothing of the author")
}
