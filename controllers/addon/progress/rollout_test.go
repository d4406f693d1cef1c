// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
)

// TestTheTutorialsCanaryRollout is the example of Open Cluster Management's guide: west and
// east first, then a quarter of the others at a time, each with a soak time of five minutes
// and a deadline of ten minutes, and two may fail.
func TestTheTutorialsCanaryRollout(t *testing.T) {
	f := newFleet(t, `{"type":"Progressive","progressive":{"mandatoryDecisionGroups":[{"groupName":"prod-canary-west"},{"groupName":"prod-canary-east"}],
		"maxConcurrency":"25%","minSuccessTime":"5m","progressDeadline":"10m","maxFailures":2}}`,
		"aws: prod-canary-west=w1 | prod-canary-east=e1 | =c1 c2 c3 c4 c5 c6 c7 c8")
	later := func(d time.Duration) { f.state.Now = f.state.Now.Add(d) }

	recheck := f.pass()
	require.Equal(t, "w1=one e1=? c1=? c2=? c3=? c4=? c5=? c6=? c7=? c8=?", f.told())
	require.Equal(t, 10*time.Minute, recheck, "the deadline of west")
	require.Equal(
		t, "True Progressing: selected clusters 10. configured addons 1/10 progressing..., 0 failed 0 timeout.",
		f.progression(0),
	)
	require.Equal(
		t, "False ConfigurationsNotConfigured: Configurations updated and not configured yet",
		f.condition("e1", "Configured"),
	)

	later(time.Minute)
	f.deploy(false, "w1")
	f.pass()
	require.Equal(t, "True Progressing: progressing... work is not ready", f.condition("w1", "Progressing"))
	later(time.Minute)
	f.deploy(true, "w1")
	require.Equal(t, 5*time.Minute, f.pass(), "west has to soak")
	require.Equal(t, "w1=one* e1=? c1=? c2=? c3=? c4=? c5=? c6=? c7=? c8=?", f.told())
	later(5*time.Minute - time.Second)
	f.pass()
	require.Contains(t, f.told(), "e1=?")
	later(time.Second)
	f.pass()
	require.Equal(t, "w1=one* e1=one c1=? c2=? c3=? c4=? c5=? c6=? c7=? c8=?", f.told())
	f.deploy(true, "e1")
	f.pass()
	later(5 * time.Minute)
	f.pass()
	require.Equal(
		t, "w1=one* e1=one* c1=one c2=one c3=? c4=? c5=? c6=? c7=? c8=?", f.told(), "a quarter of the eight others",
	)

	// One soaks successfully, the other never becomes ready.
	f.deploy(true, "c1")
	f.deploy(false, "c2")
	f.pass()
	later(5 * time.Minute)
	f.pass()
	require.Equal(t, "w1=one* e1=one* c1=one* c2=one c3=one c4=? c5=? c6=? c7=? c8=?", f.told(), "one slot is free")
	later(5 * time.Minute)
	f.pass()
	require.Equal(
		t, "True Progressing: selected clusters 10. configured addons 5/10 progressing..., 0 failed 1 timeout.",
		f.progression(0),
	)
	require.Equal(t, "w1=one* e1=one* c1=one* c2=one c3=one c4=one c5=? c6=? c7=? c8=?", f.told(), "one may fail")
	later(10 * time.Minute)
	f.pass()
	require.Equal(
		t,
		"True Progressing: selected clusters 10. configured addons 3/10 progressing..., 0 failed 3 timeout. "+
			"More are out of time than maxFailures allows, no further one is started.",
		f.progression(0),
	)
	require.Contains(t, f.told(), "c5=?")
	// Clusters that recover late let the rollout continue.
	f.deploy(true, "c2", "c3", "c4")
	f.pass()
	later(5 * time.Minute)
	for range 4 {
		f.pass()
		f.deploy(true, "c5", "c6", "c7", "c8")
		f.pass()
		later(5 * time.Minute)
	}
	require.Zero(t, f.pass())
	require.Equal(t, "w1=one* e1=one* c1=one* c2=one* c3=one* c4=one* c5=one* c6=one* c7=one* c8=one*", f.told())
	require.Equal(
		t, "False Completed: selected clusters 10. configured addons 10/10 completed with no errors, 0 failed 0 timeout.",
		f.progression(0),
	)

	// Other content is rolled out the same way; waiting clusters keep what they have.
	f.write("d", "two")
	f.pass()
	require.Equal(t, "w1=two e1=one*? c1=one*? c2=one*? c3=one*? c4=one*? c5=one*? c6=one*? c7=one*? c8=one*?", f.told())
	require.Equal(
		t, "False Completed: completed with no errors.", f.condition("e1", "Progressing"), "it keeps working unchanged",
	)
	p := f.state.AddOn.Status.InstallProgressions[0].ConfigReferences[0]
	require.Equal(
		t, "two one one", p.DesiredConfig.SpecHash+" "+p.LastAppliedConfig.SpecHash+" "+p.LastKnownGoodConfig.SpecHash,
	)
}

func TestAllAtOnce(t *testing.T) {
	f := newFleet(t, "", "p: c1 c2 c3 c4")
	f.pass()
	require.Equal(t, "c1=one c2=one c3=one c4=one", f.told())
	require.Equal(
		t, "True Progressing: selected clusters 4. configured addons 4/4 progressing..., 0 failed 0 timeout.",
		f.progression(0),
	)
	require.Equal(t, "True ConfigurationsConfigured: Configurations configured", f.condition("c1", "Configured"))
	require.Equal(t, int64(3), f.of("c1").References[0].LastObservedGeneration)
	f.deploy(true, "c1", "c2", "c3", "c4")
	f.pass()
	require.Equal(t, "c1=one* c2=one* c3=one* c4=one*", f.told())
	require.Equal(
		t, "False Completed: selected clusters 4. configured addons 4/4 completed with no errors, 0 failed 0 timeout.",
		f.progression(0),
	)
}

// TestADeadlineStopsAProgressiveRollout follows a test of Open Cluster Management itself: two
// at a time, one may fail.
func TestADeadlineStopsAProgressiveRollout(t *testing.T) {
	f := newFleet(
		t, `{"type":"Progressive","progressive":{"maxConcurrency":2,"progressDeadline":"5s","maxFailures":1}}`,
		"p: c1 c2 c3 c4",
	)
	f.pass()
	require.Equal(
		t, "True Progressing: selected clusters 4. configured addons 2/4 progressing..., 0 failed 0 timeout.",
		f.progression(0),
	)
	f.state.Now = f.state.Now.Add(5 * time.Second)
	f.pass()
	require.Equal(t, "c1=one c2=one c3=? c4=?", f.told(), "no further one is started, though these were never applied")
	require.Contains(t, f.progression(0), "configured addons 0/4 progressing..., 0 failed 2 timeout.")
	f.deploy(true, "c1", "c2")
	f.pass()
	require.Equal(t, "c1=one* c2=one* c3=one c4=one", f.told())
	require.Contains(t, f.progression(0), "configured addons 4/4 progressing..., 0 failed 0 timeout.")
	f.deploy(true, "c3", "c4")
	f.pass()
	require.Contains(t, f.progression(0), "configured addons 4/4 completed")
}

func TestTheDeadlineCountsFromWhenAClusterHasItsTurn(t *testing.T) {
	f := newFleet(t, `{"type":"Progressive","progressive":{"maxConcurrency":1,"progressDeadline":"10s"}}`, "p: c1 c2")
	f.pass()
	f.state.Now = f.state.Now.Add(9 * time.Second)
	f.deploy(true, "c1")
	f.pass()
	require.Equal(t, "c1=one* c2=one", f.told())
	f.state.Now = f.state.Now.Add(9 * time.Second)
	f.pass()
	require.Contains(t, f.progression(0), "2/2 progressing..., 0 failed 0 timeout")
	f.state.Now = f.state.Now.Add(time.Second)
	f.pass()
	require.Contains(t, f.progression(0), "1/2 progressing..., 0 failed 1 timeout")
}

func TestOneGroupAfterTheOther(t *testing.T) {
	f := newFleet(t, `{"type":"ProgressivePerGroup","progressivePerGroup":{"minSuccessTime":"3s"}}`, "p: c1 c2 | c3")
	f.pass()
	require.Equal(t, "c1=one c2=one c3=?", f.told())
	f.state.Now = f.state.Now.Add(4 * time.Second)
	f.deploy(true, "c1", "c2")
	require.Equal(t, 3*time.Second, f.pass(), "it counts from the success, not from the wait before")
	require.Equal(t, "c1=one* c2=one* c3=?", f.told())
	f.state.Now = f.state.Now.Add(3 * time.Second)
	f.pass()
	require.Equal(t, "c1=one* c2=one* c3=one", f.told())
}

func TestClustersOfSeveralPlacements(t *testing.T) {
	f := newFleet(t, "", "first: c1 c2", "second: c2")
	f.state.Placements[1].Configs = []addonv1alpha1.AddOnConfig{adc("x")}
	f.write("x", "other")
	f.pass()
	require.Equal(t, "c1=one c2=other", f.told(), "the later one counts")
	f.deploy(true, "c1")
	f.pass()
	require.Equal(
		t, "False Completed: selected clusters 2. configured addons 1/1 completed with no errors, 0 failed 0 timeout.",
		f.progression(0),
	)
	require.Equal(
		t, "True Progressing: selected clusters 1. configured addons 1/1 progressing..., 0 failed 0 timeout.",
		f.progression(1),
	)
}

func TestOneBadPlacementHoldsUpNoOther(t *testing.T) {
	f := newFleet(t, "", "good: c1", "gone: c2", "silent: c3", "bad: c4")
	f.state.Placements[1].Found, f.state.Placements[1].Clusters = false, nil
	f.state.Placements[2].Decided = false
	f.state.Placements[3].Invalid = errBad
	f.pass()
	require.Equal(t, "c1=one c2= c3= c4=", f.told())
	require.Contains(t, f.progression(0), "configured addons 1/1 progressing")
	require.Equal(
		t,
		"True Progressing: selected clusters 0. configured addons 0/0 progressing..., 0 failed 0 timeout. "+
			"There is no placement default/gone; create it, or remove it from spec.installStrategy.placements.",
		f.progression(1),
	)
	require.Contains(t, f.progression(2), "Placement default/silent has no decision yet.")
	require.Contains(t, f.progression(3), "Placement default/bad cannot be used: groups are bad.")
	require.Len(t, f.state.AddOn.Status.InstallProgressions[1].ConfigReferences, 1)
}

func TestWhoHoldsUpARollout(t *testing.T) {
	strategy := `{"type":"Progressive","progressive":{"maxConcurrency":1}}`
	t.Run("not one that is on its way out", func(t *testing.T) {
		f := newFleet(t, strategy, "p: c1 c2")
		f.of("c1").Deleting = true
		f.pass()
		require.Equal(t, "c1= c2=one", f.told())
		require.Contains(t, f.progression(0), "selected clusters 2. configured addons 1/1 progressing")
	})
	t.Run("not one whose cluster goes or is left out", func(t *testing.T) {
		f := newFleet(t, strategy, "p: c1 c2 c3")
		c := f.state.Clusters["c1"]
		c.Annotations = map[string]string{addonv1alpha1.AnnotationPrefixExclude + "metrics": ""}
		f.state.Clusters["c1"] = c
		delete(f.state.Clusters, "c2")
		f.pass()
		require.Equal(t, "c1= c2= c3=one", f.told())
	})
	t.Run("one that is yet to be installed", func(t *testing.T) {
		f := newFleet(t, strategy, "p: c1 c2")
		f.state.Instances = f.state.Instances[1:]
		f.pass()
		require.Equal(t, "c2=?", f.told(), "it may be the canary")
		require.Contains(t, f.progression(0), "configured addons 0/2 progressing")
	})
}

func TestAStoppedRolloutGoesOnByRequest(t *testing.T) {
	const stopped = "0 failed 2 timeout. More are out of time than maxFailures allows, no further one is started."
	f := newFleet(
		t, `{"type":"Progressive","progressive":{"maxConcurrency":2,"progressDeadline":"5s","maxFailures":1}}`,
		"p: c1 c2 c3 c4 c5 c6 c7",
	)
	later := func(d time.Duration) {
		f.state.Now = f.state.Now.Add(d)
		f.pass()
	}
	request := func(text string) {
		f.state.AddOn.Annotations = map[string]string{addonv1alpha1.AnnotationResumeRollout: text}
		f.sent = nil
		f.pass()
	}
	f.pass()
	later(5 * time.Second)
	require.Contains(t, f.progression(0), stopped)
	request("once")
	require.Equal(t, "c1=one c2=one c3=one c4=one c5=? c6=? c7=?", f.told())
	require.Contains(
		t, f.progression(0), "configured addons 2/7 progressing..., 0 failed 2 timeout.",
		"forgiven clusters are still counted",
	)
	require.NotContains(t, f.progression(0), stopped)
	require.Equal(
		t,
		[]string{
			"Normal RolloutResumed: The rollout of placement default/p continues without the clusters that timed out: c1, c2",
		},
		f.sent,
	)
	require.Equal(
		t, "True Requested: Asked for by resume-rollout.open-cluster-management.io/addon: once",
		conditionText(f.state.AddOn.Status.InstallProgressions[0].Conditions, addonv1alpha1.ConditionResumed),
	)

	// Later failures count again; the earlier request does not forgive them.
	f.deploy(true, "c3")
	f.pass()
	require.Contains(t, f.told(), "c4=one c5=one c6=?")
	later(5 * time.Second)
	require.Contains(t, f.progression(0), "0 failed 4 timeout. More are out of time than maxFailures allows")
	require.Contains(t, f.told(), "c6=?")
	request("twice")
	require.Contains(t, f.told(), "c6=one c7=one")
	f.deploy(true, "c1", "c2", "c4", "c5", "c6", "c7")
	f.pass()
	require.Contains(t, f.progression(0), "configured addons 7/7 completed")

	// What was forgiven for one content is not forgiven for another, and without a request
	// nothing is.
	f.write("d", "two")
	f.pass()
	later(5 * time.Second)
	require.Contains(t, f.progression(0), stopped)
	require.Equal(t, "c1=two c2=two c3=one*? c4=one*? c5=one*? c6=one*? c7=one*?", f.told())
	request("thrice")
	require.NotContains(t, f.progression(0), stopped)
	request("")
	later(5 * time.Second)
	require.Contains(t, f.progression(0), "0 failed 4 timeout. More are out of time")
	require.Len(t, f.state.AddOn.Status.InstallProgressions[0].Conditions, 1)
}

// A mandatory group tolerates no failure, so only a request gets past it; an old request does
// not become new when the add-on names other configurations.
func TestARequestLetsAMandatoryGroupPassOnce(t *testing.T) {
	f := newFleet(
		t,
		`{"type":"ProgressivePerGroup","progressivePerGroup":{"progressDeadline":"5s","mandatoryDecisionGroups":[{"groupName":"canary"}]}}`,
		"p: canary= c1 | c2",
	)
	f.pass()
	f.state.Now = f.state.Now.Add(5 * time.Second)
	f.pass()
	require.Equal(t, "c1=one c2=?", f.told())
	long := "x" + strings.Repeat("é", 100)
	require.True(
		t, utf8.ValidString(addonv1alpha1.ResumedBy(long)),
		"otherwise the API server stores another text, and every pass sees a new request",
	)
	f.state.AddOn.Annotations = map[string]string{addonv1alpha1.AnnotationResumeRollout: long}
	f.pass()
	require.Equal(t, "c1=one c2=one", f.told())

	f.deploy(true, "c1", "c2")
	f.state.Placements[0].Configs = []addonv1alpha1.AddOnConfig{adc("x")}
	f.write("x", "other")
	f.pass()
	f.state.Now = f.state.Now.Add(5 * time.Second)
	f.pass()
	require.Equal(t, "c1=other c2=one*?", f.told())
	require.Contains(t, f.progression(0), "More are out of time")
}
