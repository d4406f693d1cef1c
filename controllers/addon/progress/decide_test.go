// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/addon/instance"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

var errBad = errors.New("groups are bad")

func TestConfigurationsOfACluster(t *testing.T) {
	f := newFleet(t, "", "p: c1")
	f.state.Placements[0].Configs = []addonv1alpha1.AddOnConfig{adc("late")}
	f.pass()
	require.Equal(t, "c1=", f.told(), "a missing object has no hash")
	require.Equal(t, int64(0), f.of("c1").References[0].LastObservedGeneration)
	f.write("late", "here")
	f.pass()
	require.Equal(t, "c1=here", f.told())

	f.write("mine", "own")
	f.of("c1").Configs = []addonv1alpha1.AddOnConfig{adc("mine"), adc("d")}
	f.pass()
	require.Equal(t, "c1=own,one", f.told(), "several of a kind, in order")
	f.of("c1").Configs = nil
	f.pass()
	require.Equal(t, "c1=here", f.told())
	f.state.Placements[0].Configs = nil
	f.pass()
	require.Equal(t, "c1=one", f.told())
}

func TestAnUnsupportedKindIsListedWithoutAHash(t *testing.T) {
	f := newFleet(t, "", "p: c1")
	f.of("c1").Configs = []addonv1alpha1.AddOnConfig{
		{ConfigGroupResource: foreignKind, ConfigReferent: addonv1alpha1.ConfigReferent{Name: "x"}},
	}
	f.pass()
	require.Equal(t, "c1=one,", f.told())
	require.Equal(
		t,
		"False ConfigurationUnsupported: Configuration with gvr example.com/exampleconfigs is not supported for this addon; "+
			"remove it from spec.configs[0], status.supportedConfigs lists what is",
		f.condition("c1", "Progressing"),
	)
	f.of("c1").Configs, f.of("c1").Supported = []addonv1alpha1.AddOnConfig{adc("d")}, []addonv1alpha1.ConfigGroupResource{foreignKind}
	f.of("c1").References = nil
	f.pass()
	require.Equal(t, "c1=", f.told(), "also of a kind that the hub knows")
}

func TestAClustersOwnChoiceDoesNotHoldUpTheAddOn(t *testing.T) {
	f := newFleet(t, "", "p: c1 c2")
	f.of("c1").Configs = []addonv1alpha1.AddOnConfig{adc("missing")}
	f.pass()
	f.deploy(true, "c2")
	f.deploy(true, "c1")
	f.of("c1").Works = []instance.Work{{Readable: true, Ready: true}}
	f.pass()
	require.Equal(
		t,
		"True Progressing: progressing... mca and work configs mismatch; not found, or not read by the add-on: addondeploymentconfigs ns/missing",
		f.condition("c1", "Progressing"),
	)
	require.Equal(t, "c1= c2=one*", f.told())
	require.Contains(t, f.progression(0), "configured addons 2/2 completed")
}

func TestHashesOfOtherKindsAreThoseOfTheAddOnsController(t *testing.T) {
	f := newFleet(t, "", "p: c1")
	theirs := addonv1alpha1.ConfigReferent{Namespace: "ns", Name: "x"}
	f.state.Placements[0].Configs = []addonv1alpha1.AddOnConfig{{ConfigGroupResource: foreignKind, ConfigReferent: theirs}}
	f.pass()
	require.Equal(t, "c1=one,", f.told())
	f.state.AddOn.Status.InstallProgressions[0].ConfigReferences[1].DesiredConfig.SpecHash = "theirs"
	f.pass()
	require.Equal(t, "c1=one,theirs", f.told())
	require.Equal(t, "theirs", f.state.AddOn.Status.InstallProgressions[0].ConfigReferences[1].DesiredConfig.SpecHash)
}

func TestProgressing(t *testing.T) {
	cases := map[string]struct {
		change func(*Instance)
		want   string
	}{
		"nothing applied yet": {
			func(i *Instance) { apimeta.RemoveStatusCondition(&i.Conditions, "ManifestApplied") },
			"False WaitingForManifestApplied: waiting for the condition ManifestApplied",
		},
		"nothing applied where it is hosted": {func(i *Instance) {
			i.Annotations = map[string]string{addonv1alpha1.AnnotationHostingClusterName: "host"}
		}, "False WaitingForHostingManifestApplied: waiting for the condition HostingManifestApplied"},
		"an empty hosting cluster is none": {func(i *Instance) {
			i.Annotations = map[string]string{addonv1alpha1.AnnotationHostingClusterName: ""}
		}, "False Completed: completed with no errors."},
		"no works": {
			func(i *Instance) { i.Works = nil },
			"True Progressing: progressing... no addon works",
		},
		"works of another content": {
			func(i *Instance) { i.Works[0].Mark = `{"x":"y"}` },
			"True Progressing: progressing... mca and work configs mismatch",
		},
		"works without a mark": {
			func(i *Instance) { i.Works[0].Mark = "" },
			"True Progressing: progressing... mca and work configs mismatch",
		},
		"a mark that cannot be read": {
			func(i *Instance) { i.Works[0].Readable = false },
			"True Progressing: progressing... mca and work configs mismatch",
		},
		"one of several is not ready": {
			func(i *Instance) { i.Works = append(i.Works, instance.Work{Mark: i.Works[0].Mark, Readable: true}) },
			"True Progressing: progressing... work is not ready",
		},
		"all there": {func(*Instance) {}, "False Completed: completed with no errors."},
		"not applied is still an answer": {
			func(i *Instance) {
				apimeta.SetStatusCondition(
					&i.Conditions,
					metav1.Condition{Type: "ManifestApplied", Status: metav1.ConditionFalse, Reason: "ManifestWorkApplyFailed"},
				)
			},
			"False Completed: completed with no errors.",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, "", "p: c1")
			f.pass()
			f.deploy(true, "c1")
			tc.change(f.of("c1"))
			f.pass()
			require.Equal(t, tc.want, f.condition("c1", "Progressing"))
			require.Equal(
				t, tc.want == "False Completed: completed with no errors.", f.of("c1").References[0].LastAppliedConfig != nil,
			)
		})
	}
}

func TestManualTakesDefaultsAtOnce(t *testing.T) {
	f := newFleet(t, "", "p: c1 c2")
	f.state.AddOn.Spec.InstallStrategy.Type = addonv1alpha1.InstallStrategyManual
	f.state.Placements = nil
	f.write("own", "other")
	f.of("c2").Configs = []addonv1alpha1.AddOnConfig{adc("own")}
	f.pass()
	require.Equal(t, "c1=one c2=other", f.told())
	require.Empty(t, f.state.AddOn.Status.InstallProgressions)
	require.Equal(t, "one", f.state.AddOn.Status.DefaultConfigReferences[0].DesiredConfig.SpecHash)
	require.Equal(t, "True ConfigurationsConfigured: Configurations configured", f.condition("c1", "Configured"))
}

func TestAnAddOnWithoutConfigurationsIsConfigured(t *testing.T) {
	f := newFleet(t, `{"type":"Progressive","progressive":{"maxConcurrency":1}}`, "p: c1 c2")
	f.state.AddOn.Spec.SupportedConfigs = nil
	f.pass()
	require.Equal(t, "True ConfigurationsConfigured: Configurations configured", f.condition("c2", "Configured"))
	require.Contains(t, f.progression(0), "configured addons 2/2 completed", "nothing is desired")
}

func TestOneThatInstallsItselfHasDefaultReferencesAlone(t *testing.T) {
	f := newFleet(t, "", "p: c1")
	f.state.AddOn.Annotations = map[string]string{addonv1alpha1.AnnotationLifecycle: addonv1alpha1.LifecycleSelf}
	f.state.AddOn.Status.InstallProgressions = []addonv1alpha1.InstallProgression{
		{PlacementRef: addonv1alpha1.PlacementRef{Namespace: "their", Name: "own"}},
	}
	f.pass()
	require.Equal(t, "c1=", f.told())
	require.Empty(t, f.of("c1").Conditions)
	require.Equal(t, "own", f.state.AddOn.Status.InstallProgressions[0].Name)
	require.Equal(t, "one", f.state.AddOn.Status.DefaultConfigReferences[0].DesiredConfig.SpecHash)
}

// TestWritesAreFencedAndLeaveOthersAlone checks the patch itself.
func TestWritesAreFencedAndLeaveOthersAlone(t *testing.T) {
	f := newFleet(t, "", "p: c1")
	f.of("c1").Conditions = []metav1.Condition{
		{Type: addonv1alpha1.ConditionAvailable, Status: metav1.ConditionTrue, Reason: "ByTheAgent", Message: "m"},
	}
	patch := reconcile.Of[reconcile.Patch](Decide(f.state).Writes)[0]
	require.Equal(t, "managedclusteraddons c1/metrics", patch.String())
	require.Equal(t, "a-c1 1 status", string(patch.UID)+" "+patch.Version+" "+patch.Subresource)
	f.pass()
	require.Equal(t, "True ByTheAgent: m", f.condition("c1", addonv1alpha1.ConditionAvailable))
	require.Len(t, f.of("c1").Conditions, 3)
}
