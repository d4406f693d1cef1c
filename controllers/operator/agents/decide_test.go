// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/operator/shared"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

const namespace = "open-cluster-management-agent"

// state returns that of a Klusterlet named k with a finalizer, in the mode Default.
func state(change ...func(*State)) State {
	k := &operatorv1.Klusterlet{}
	k.Name, k.UID, k.Generation, k.Spec.ClusterName, k.Finalizers = "k", "uid", 2, "c1", []string{operatorv1.FinalizerKlusterlet}
	s := State{
		Parts: shared.Parts{Own: "k", Live: map[string]shared.Definition{}}, Now: now, Klusterlet: k, Image: "own:1",
		Deployments: map[reconcile.Key]Deployment{}, Written: map[reconcile.Key]bool{}, Namespaces: map[string]Labelled{},
		Secrets: map[string]map[string]Secret{}, PullCopies: map[string]Secret{}, ProfileCopies: map[string]Profile{}, Policies: map[string]Labelled{},
	}
	for _, f := range change {
		f(&s)
	}
	return s
}

// applied returns the objects that a plan applies, by kind and name.
func applied(p Plan) map[string]*unstructured.Unstructured {
	out := map[string]*unstructured.Unstructured{}
	for _, stage := range p.Stages {
		for _, a := range reconcile.Of[reconcile.Apply](stage.Writes) {
			u := a.Object.(*unstructured.Unstructured)
			out[u.GetKind()+" "+u.GetNamespace()+"/"+u.GetName()] = u
		}
	}
	return out
}

// settle makes the Deployments of the plan exist as they were written, with available pods.
func settle(s *State) {
	for _, u := range applied(Decide(*s)) {
		if u.GetKind() == "Deployment" {
			key := reconcile.KeyOf(u)
			s.Deployments[key] = Deployment{
				Key: key, Owner: "k", Hash: u.GetAnnotations()[operatorv1.AnnotationSpecHash], UID: "d", Generation: 1, Wanted: 1, Available: 1,
			}
			s.Written[key] = true
		}
	}
}

func condition(t *testing.T, p Plan, kind string) string {
	t.Helper()
	c := apimeta.FindStatusCondition(p.Object.(*operatorv1.Klusterlet).Status.Conditions, kind)
	require.NotNil(t, c)
	return string(c.Status) + " " + c.Reason
}

func TestTheLayoutAndTheModeDecideOnTheProcesses(t *testing.T) {
	for name, tc := range map[string]struct {
		compact bool
		mode    operatorv1.InstallMode
		want    []string
	}{
		"split, no mode":    {false, "", []string{"k-registration-agent", "k-work-agent"}},
		"split, Default":    {false, operatorv1.InstallModeDefault, []string{"k-registration-agent", "k-work-agent"}},
		"split, Singleton":  {false, operatorv1.InstallModeSingleton, []string{"k-agent"}},
		"compact, Default":  {true, operatorv1.InstallModeDefault, []string{"k-agent"}},
		"compact Singleton": {true, operatorv1.InstallModeSingleton, []string{"k-agent"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := state(func(s *State) { s.Compact, s.Klusterlet.Spec.DeployOption.Mode = tc.compact, tc.mode })
			var got []string
			for _, u := range applied(Decide(s)) {
				if u.GetKind() == "Deployment" {
					got = append(got, u.GetName())
				}
			}
			require.ElementsMatch(t, tc.want, got)
		})
	}
}

func TestAFinalizerComesBeforeWhatItProtects(t *testing.T) {
	p := Decide(state(func(s *State) { s.Klusterlet.Finalizers = nil }))
	require.Empty(t, p.Stages)
	require.Equal(t, []string{operatorv1.FinalizerKlusterlet}, p.Object.GetFinalizers())
}

func TestADeploymentIsWrittenWhenItDiffers(t *testing.T) {
	key := reconcile.Key{Namespace: namespace, Name: "k-registration-agent"}
	for name, tc := range map[string]struct {
		change func(*State)
		want   bool
	}{
		"as written":         {func(*State) {}, false},
		"changed by hand":    {func(s *State) { s.Written[key] = false }, true},
		"of another spec":    {func(s *State) { s.Klusterlet.Spec.PriorityClassName = "high" }, true},
		"of another version": {func(s *State) { s.Image = "own:2" }, true},
		"deleted":            {func(s *State) { delete(s.Deployments, key) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := state()
			settle(&s)
			tc.change(&s)
			_, got := applied(Decide(s))["Deployment "+namespace+"/k-registration-agent"]
			require.Equal(t, tc.want, got)
		})
	}
}

func TestWhatRanBeforeGoesOnceTheNewAgentIsAvailable(t *testing.T) {
	old := reconcile.Key{Namespace: namespace, Name: "k-agent"}
	foreign := reconcile.Key{Namespace: namespace, Name: "someone"}
	for name, tc := range map[string]struct {
		change func(*State)
		want   int
	}{
		"available": {func(*State) {}, 3},
		"not available": {func(s *State) {
			s.Deployments[reconcile.Key{Namespace: namespace, Name: "k-work-agent"}] = Deployment{}
		}, 0},
		"not written": {func(s *State) { s.Written[reconcile.Key{Namespace: namespace, Name: "k-work-agent"}] = false }, 0},
		"refused":     {func(s *State) { s.Klusterlet.Spec.DeployOption.Mode = operatorv1.InstallModeHosted }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := state(func(s *State) {
				s.Namespaces["before"] = Labelled{Name: "before", Klusterlet: "k", Owner: "k", UID: "n"}
				s.Namespaces["leaving"] = Labelled{Name: "leaving", Klusterlet: "k", Owner: "k", Leaving: true}
				s.Namespaces["foreign"] = Labelled{Name: "foreign", Klusterlet: "k", Owner: "other"}
				s.Former = []reconcile.Write{reconcile.Remove{Target: reconcile.Target{Name: "kubectl-ocm:k"}}}
			})
			settle(&s)
			s.Deployments[old], s.Deployments[foreign] = Deployment{Key: old, UID: "old"}, Deployment{Key: foreign}
			tc.change(&s)
			var got []string
			for _, w := range Decide(s).Writes {
				got = append(got, reconcile.TargetOf(w).Name)
			}
			require.Len(t, got, tc.want)
			if tc.want > 0 {
				require.Equal(t, []string{"k-agent", "kubectl-ocm:k", "before"}, got)
			}
		})
	}
}

func TestRemovalWaitsForTheProcessesForAWhile(t *testing.T) {
	key := reconcile.Key{Namespace: namespace, Name: "k-agent"}
	for name, tc := range map[string]struct {
		change       func(*State)
		remove, wait bool
	}{
		"they run":              {func(s *State) { s.Deployments[key] = Deployment{Key: key} }, true, true},
		"they are ending":       {func(s *State) { s.Deployments[key] = Deployment{Key: key, Leaving: now.Add(-endPatience / 2)} }, true, true},
		"they do not end":       {func(s *State) { s.Deployments[key] = Deployment{Key: key, Leaving: now.Add(-endPatience)} }, true, false},
		"they ended":            {func(*State) {}, true, false},
		"nothing was installed": {func(s *State) { s.Klusterlet.Finalizers = nil }, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := state(func(s *State) { s.Klusterlet.DeletionTimestamp = &metav1.Time{Time: now} }, tc.change)
			p := Decide(s)
			require.Equal(t, tc.remove, p.Remove)
			require.Equal(t, tc.wait, p.Await)
			if tc.remove {
				require.Empty(t, p.Object.GetFinalizers())
			}
		})
	}
}

func TestResourcesOfAContainer(t *testing.T) {
	given := &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("7m")}}
	for name, tc := range map[string]struct {
		asked *operatorv1.ResourceRequirement
		want  any
	}{
		"nothing is said": {nil, "recommended"},
		"the default":     {&operatorv1.ResourceRequirement{Type: operatorv1.ResourceQosClassDefault}, "recommended"},
		"best effort":     {&operatorv1.ResourceRequirement{Type: operatorv1.ResourceQosClassBestEffort}, nil},
		"those given": {
			&operatorv1.ResourceRequirement{Type: operatorv1.ResourceQosClassResourceRequirement, ResourceRequirements: given},
			map[string]any{"requests": map[string]any{"cpu": "7m"}},
		},
		"none of those given": {&operatorv1.ResourceRequirement{Type: operatorv1.ResourceQosClassResourceRequirement}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			container := map[string]any{"resources": "recommended"}
			require.NoError(t, setResources(container, tc.asked))
			require.Equal(t, tc.want, container["resources"])
		})
	}
}

func TestLabelsOfAKlusterletAreOnItsObjects(t *testing.T) {
	labelled := func(sync bool) State {
		return state(func(s *State) {
			s.SyncLabels = sync
			s.Klusterlet.Labels = map[string]string{"team": "a", "app": "x", "open-cluster-management.io/x": "y"}
		})
	}
	of := func(s State) (deployment, namespaced, shared map[string]string) {
		all := applied(Decide(s))
		return all["Deployment "+namespace+"/k-registration-agent"].GetLabels(), all["Namespace /"+namespace].GetLabels(),
			all["Namespace /"+operatorv1.NamespaceAgentAddOn].GetLabels()
	}
	own := map[string]string{operatorv1.LabelCreatedByKlusterlet: "k"}
	for sync, want := range map[bool]string{false: "", true: "a"} {
		deployment, namespaced, shared := of(labelled(sync))
		require.Equal(t, []string{want, want, "klusterlet-registration-agent"}, []string{deployment["team"], namespaced["team"], deployment["app"]})
		require.Equal(t, own, shared, "agents of other Klusterlets write it, too")
		require.NotContains(t, deployment, "open-cluster-management.io/x")
	}
	s := labelled(true)
	settle(&s)
	require.NotContains(t, applied(Decide(s)), "Deployment "+namespace+"/k-registration-agent")
	s.Klusterlet.Labels["team"] = "b"
	require.Contains(t, applied(Decide(s)), "Deployment "+namespace+"/k-registration-agent")
}

func TestTheNamespaceOfAddOnsCanBeLeftOut(t *testing.T) {
	for without, want := range map[bool]bool{false: true, true: false} {
		p := Decide(state(func(s *State) { s.NoAddOns = without }))
		_, got := applied(p)["Namespace /"+operatorv1.NamespaceAgentAddOn]
		require.Equal(t, want, got)
	}
}

func TestCopiesGoWithTheLastKlusterlet(t *testing.T) {
	for neighbor, want := range map[string][]string{"": {"configmaps theirs/ocm-tls-profile", "secrets theirs/" + operatorv1.SecretImagePull}, "other": nil} {
		s := state(func(s *State) {
			s.Klusterlet.DeletionTimestamp = &metav1.Time{Time: now}
			s.Namespaces = map[string]Labelled{"theirs": {Name: "theirs", AddOns: true}, "mine": {Name: "mine", AddOns: true}}
			s.PullSource, s.PullCopies = &Secret{}, map[string]Secret{"theirs": {Owner: "k"}, "mine": {}}
			s.Profile, s.ProfileCopies = &Profile{}, map[string]Profile{"theirs": {Owner: "k"}, "mine": {}}
			if neighbor != "" {
				s.Neighbors = []string{neighbor}
			}
		})
		var got []string
		for _, r := range reconcile.Of[reconcile.Remove](Decide(s).Writes) {
			got = append(got, r.Target.Resource.Resource+" "+r.Target.Namespace+"/"+r.Target.Name)
		}
		require.ElementsMatch(t, want, got, neighbor)
	}
}

func TestLimitsOfConnectionsAreFlagsOfEveryProcess(t *testing.T) {
	of := func(s State) (out [][]string) {
		for _, u := range applied(Decide(s)) {
			if u.GetKind() == "Deployment" {
				containers, _, _ := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
				args, _, _ := unstructured.NestedStringSlice(containers[0].(map[string]any), "args")
				out = append(out, slices.DeleteFunc(args, func(arg string) bool { return !strings.HasPrefix(arg, "--tls-") }))
			}
		}
		return out
	}
	require.Equal(t, [][]string{{}, {}}, of(state()))
	limited := func(version string) func(*State) {
		return func(s *State) {
			s.Profile = &Profile{Namespace: "o", Data: map[string]string{"minTLSVersion": version, "cipherSuites": "TLS_AES_128_GCM_SHA256"}}
		}
	}
	want := []string{"--tls-min-version=VersionTLS13", "--tls-cipher-suites=TLS_AES_128_GCM_SHA256"}
	require.Equal(t, [][]string{want, want}, of(state(limited("TLSv1.3"))))
	broken := state(limited("1.4"))
	require.Empty(t, of(broken), "what runs stays as it is")
	require.Equal(t, "False KlusterletApplyFailed", condition(t, Decide(broken), operatorv1.ConditionApplied))
}

func TestAProcessOfItsOwnIsSeenByItsArguments(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"none":                  {nil, ""},
		"another command":       {[]string{"agent", "--klusterlet=x"}, ""},
		"the default":           {[]string{"run"}, "klusterlet"},
		"the default with more": {[]string{"run", "-v=1"}, "klusterlet"},
		"a name":                {[]string{"run", "--klusterlet=x"}, "x"},
		"a name apart":          {[]string{"run", "-v", "1", "--klusterlet", "x"}, "x"},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, tc.want, runs(tc.args)) })
	}
}

func TestWorksHaveNoRightToSecretsOfTheirNamespace(t *testing.T) {
	objects, err := rights(state().Klusterlet, namespace, true)
	require.NoError(t, err)
	subjects := map[string][]string{}
	for _, u := range objects {
		require.Equal(t, "k", u.GetLabels()[operatorv1.LabelCreatedByKlusterlet], u.GetName())
		list, _, _ := unstructured.NestedSlice(u.Object, "subjects")
		for _, item := range list {
			subjects[u.GetName()] = append(subjects[u.GetName()], item.(map[string]any)["name"].(string))
		}
	}
	require.Equal(t, map[string][]string{
		"kubectl-ocm:k:metrics":                       {"k-work-sa", "k-registration-sa"},
		"kubectl-ocm:k-registration:agent":            {"k-registration-sa"},
		"kubectl-ocm:k-registration:addon-management": {"k-registration-sa"},
		"kubectl-ocm:k-work:agent":                    {"k-work-sa"},
		"kubectl-ocm:k-work:execution":                {"k-work-sa"},
		"kubectl-ocm:k-work:aggregate":                {"k-work-sa"},
		"kubectl-ocm:k-work:execution-admin":          {"k-work-sa"},
		"kubectl-ocm:management:k-registration:agent": {"k-registration-sa"},
		"kubectl-ocm:management:k-work:agent":         {"k-work-sa"},
	}, subjects)
}

func TestSeveralHubsAreNamedOnTheCommandLine(t *testing.T) {
	s := state(func(s *State) {
		c := &operatorv1.RegistrationConfiguration{FeatureGates: []operatorv1.FeatureGate{{Feature: "MultipleHubs", Mode: operatorv1.FeatureGateModeTypeEnable}}}
		c.BootstrapKubeConfigs = operatorv1.BootstrapKubeConfigs{
			Type:               operatorv1.BootstrapKubeConfigTypeLocalSecrets,
			LocalSecretsConfig: &operatorv1.LocalSecretsConfig{KubeConfigSecrets: []operatorv1.KubeConfigSecret{{Name: "a"}, {Name: "b"}}},
		}
		s.Klusterlet.Spec.RegistrationConfiguration = c
	})
	p := Decide(s)
	spec, _, _ := unstructured.NestedSlice(applied(p)["Deployment "+namespace+"/k-registration-agent"].Object, "spec", "template", "spec", "containers")
	require.Subset(t, spec[0].(map[string]any)["args"], []any{
		"--bootstrap-kubeconfigs=/spoke/a/kubeconfig", "--bootstrap-kubeconfigs=/spoke/b/kubeconfig", "--hub-connection-timeout-seconds=600",
		"--feature-gates=MultipleHubs=true",
	})
	require.Equal(t, "True HubKubeConfigSecretMissing", condition(t, p, operatorv1.ConditionHubConnectionDegraded))
	s.Klusterlet.Spec.RegistrationConfiguration.BootstrapKubeConfigs.LocalSecretsConfig = nil
	require.Equal(t, "False KlusterletApplyFailed", condition(t, Decide(s), operatorv1.ConditionApplied), "without a list")
}

func TestAnnotationsAreQuoted(t *testing.T) {
	require.Equal(t, `a=1,"b=2,3"`, pairs(map[string]string{"b": "2,3", "a": "1"}))
}

// TestAnImageOfAnotherDistributionIsRefused: it would be started with arguments that it does not know.
func TestAnImageOfAnotherDistributionIsRefused(t *testing.T) {
	p := Decide(state(func(s *State) { s.Klusterlet.Spec.WorkImagePullSpec = "mirror.example/work:v1.3.1" }))
	require.Empty(t, p.Stages)
	c := apimeta.FindStatusCondition(p.Object.(*operatorv1.Klusterlet).Status.Conditions, operatorv1.ConditionApplied)
	require.Equal(t, metav1.ConditionFalse, c.Status)
	require.Contains(t, c.Message, `spec.workImagePullSpec="mirror.example/work:v1.3.1"`)
	one := state(func(s *State) { s.Klusterlet.Spec.WorkImagePullSpec, s.Compact = "mirror.example/work:v1.3.1", true })
	require.NotEmpty(t, Decide(one).Stages, "the one process has another image")
}
