// SPDX-License-Identifier: Apache-2.0

package klusterlet

import (
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	config "github.com/kubectl-ocm/kubectl-ocm/config/agent"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/operator/settings"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/operator/shared"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/access"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/registration/agent/credential"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// bootstrap is the secret in use.
const bootstrap = operatorv1.SecretBootstrapHubKubeconfig

var now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func definition(name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{
		Object: map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"},
	}
	u.SetName(name)
	return u
}

// serving returns the State of a working agent.
func serving(change ...func(*operatorv1.Klusterlet)) State {
	k := &operatorv1.Klusterlet{}
	k.Name, k.UID, k.Generation, k.Spec.ClusterName = "klusterlet", "uid", 2, "c1"
	k.Finalizers = []string{operatorv1.FinalizerKlusterlet}
	for _, f := range change {
		f(k)
	}
	return State{
		Parts: shared.Parts{
			Own: "klusterlet", Version: "v1.2.0", Wanted: []*unstructured.Unstructured{definition("works"), definition("claims")},
			Live: map[string]shared.Definition{
				"works":  {ResourceVersion: "7", Version: "v1.2.0", Established: true},
				"claims": {ResourceVersion: "8", Version: "v1.1.0", Established: true},
			},
		},
		Now:             now,
		Klusterlet:      k,
		Namespace:       operatorv1.NamespaceAgent,
		SecretsKnown:    true,
		Registration:    credential.Report{Bootstrap: bootstrap, Phase: credential.PhaseServing},
		HubSecret:       map[string][]byte{"kubeconfig": []byte("k"), "cluster-name": []byte("c1")},
		BootstrapSecret: map[string][]byte{"kubeconfig": []byte("k")},
		Pull:            pullSecret(),
		Profile:         tlsProfile(),
	}
}

func conditions(t *testing.T, p Plan) map[string]string {
	t.Helper()
	k, ok := p.Object.(*operatorv1.Klusterlet)
	require.True(t, ok)
	out := map[string]string{}
	for _, c := range k.Status.Conditions {
		require.Equal(t, int64(2), c.ObservedGeneration)
		out[c.Type] = string(c.Status) + " " + c.Reason
	}
	return out
}

func TestServedKlusterlet(t *testing.T) {
	p := Decide(serving())
	require.Empty(t, cmp.Diff(map[string]string{
		"Applied": "True KlusterletApplied", "ValidFeatureGates": "True FeatureGatesAllValid",
		"SpecSupported": "True AllFieldsSupported",
		"Available":     "True KlusterletAvailable", "RegistrationDesiredDegraded": "False DeploymentsFunctional",
		"WorkDesiredDegraded": "False DeploymentsFunctional", "HubConnectionDegraded": "False HubConnectionFunctional",
	}, conditions(t, p)))
	require.Len(t, reconcile.Of[reconcile.Apply](p.Writes), 3)
	require.Equal(t, "7", reconcile.Of[reconcile.Apply](p.Writes)[0].LiveVersion)
	u := reconcile.Of[reconcile.Apply](p.Writes)[0].Object.(*unstructured.Unstructured)
	require.Equal(t, "klusterlet", u.GetLabels()[operatorv1.LabelCreatedByKlusterlet])
	require.Equal(t, "v1.2.0", u.GetAnnotations()[operatorv1.AnnotationVersion])
	require.False(t, p.Keep)
	require.Equal(
		t,
		&agent.Settings{
			ClusterName: "c1", AgentName: "uid", WorkAgentID: "uid", Claims: true, AddOns: true, HealthPeriod: time.Minute, MaxClaims: 20,
		},
		p.Settings,
	)
	require.Zero(t, p.RequeueAfter)
}

func TestFinalizerComesFirst(t *testing.T) {
	p := Decide(serving(func(k *operatorv1.Klusterlet) { k.Finalizers = nil }))
	require.Equal(t, []string{operatorv1.FinalizerKlusterlet}, p.Object.GetFinalizers())
}

func TestNoKlusterletStopsTheRegistration(t *testing.T) {
	require.Equal(t, Plan{}, Decide(State{}))
}

func TestDefinitionsOfANewerVersionAreLeftAlone(t *testing.T) {
	for name, tc := range map[string]struct {
		live, own string
		want      bool
	}{
		"absent or without a version": {"", "v1.2.0", true},
		"older":                       {"v1.1.9", "v1.2.0", true},
		"the same":                    {"v1.2.0", "v1.2.0", true},
		"newer":                       {"v1.10.0", "v1.2.0", false},
		"no version at all":           {"latest", "v1.2.0", true},
		"a development build is old":  {"v0.1.0", "v0.0.0-dev", false},
	} {
		t.Run(name, func(t *testing.T) {
			s := serving()
			s.Version, s.Wanted, s.Live = tc.own, s.Wanted[:1], map[string]shared.Definition{
				"works": {ResourceVersion: "1", Version: tc.live, Established: true},
			}
			require.Equal(t, tc.want, reconcile.Of[reconcile.Apply](Decide(s).Writes)[0].Object.GetName() == "works")
		})
	}
}

func TestTheDefinitionOfPropertiesIsMadeWhereItIsMissing(t *testing.T) {
	for name, tc := range map[string]struct {
		gate    operatorv1.FeatureGateModeType
		defined bool
		want    int
	}{
		"the gate is off":     {operatorv1.FeatureGateModeTypeDisable, false, 0},
		"there is none":       {operatorv1.FeatureGateModeTypeEnable, false, 1},
		"somebody's is there": {operatorv1.FeatureGateModeTypeEnable, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := serving()
			s.Defined = tc.defined
			s.Klusterlet.Spec.RegistrationConfiguration = &operatorv1.RegistrationConfiguration{
				FeatureGates: []operatorv1.FeatureGate{{Feature: "ClusterProperty", Mode: tc.gate}},
			}
			p := Decide(s)
			made := reconcile.Of[reconcile.Create](p.Writes)
			require.Len(t, made, tc.want)
			require.False(t, p.Keep, "nothing waits for it")
			for _, one := range made {
				require.Equal(t, "clusterproperties.about.k8s.io", one.Object.GetName())
				require.Empty(t, one.Object.GetLabels(), "it goes with no Klusterlet")
			}
		})
	}
}

func TestRegistrationWaitsForTheDefinitions(t *testing.T) {
	s := serving()
	s.Live = map[string]shared.Definition{}
	require.True(t, Decide(s).Keep)
	s.Live = map[string]shared.Definition{"works": {Established: true}, "claims": {}}
	require.True(t, Decide(s).Keep)
}

func TestHubConnection(t *testing.T) {
	for name, tc := range map[string]struct {
		change  func(*State)
		reason  string
		message string
		retry   time.Duration
	}{
		"nothing there": {
			func(s *State) { s.HubSecret, s.BootstrapSecret = nil, nil },
			"BootstrapSecretMissing,HubKubeConfigSecretMissing",
			"is missing",
			0,
		},
		"an empty hub secret": {func(s *State) { s.HubSecret, s.BootstrapSecret = map[string][]byte{}, nil },
			"BootstrapSecretMissing,HubKubeConfigMissing", "", 0},
		"bootstrap works, an empty hub secret": {
			func(s *State) { s.HubSecret = map[string][]byte{} },
			"BootstrapSecretFunctional,HubKubeConfigMissing",
			"has no kubeconfig",
			0,
		},
		"no cluster name": {
			func(s *State) { delete(s.HubSecret, "cluster-name") },
			"BootstrapSecretFunctional,ClusterNameMissing",
			"",
			0,
		},
		"the kept access does not work": {func(s *State) { s.Hub.Problem = "no route" },
			"BootstrapSecretFunctional,HubKubeConfigError", "no route", 30 * time.Second},
		"the certificate expired": {
			func(s *State) {
				s.Registration = credential.Report{
					Bootstrap: bootstrap, Phase: credential.PhaseConnecting, Unusable: "the certificate expired at noon",
					Message: "asking",
				}
			},
			"BootstrapSecretFunctional,HubKubeConfigError",
			"The kept access cannot be used: the certificate expired at noon. asking",
			access.Retry,
		},
		"the hub does not answer any more": {
			func(s *State) {
				s.Trouble = agent.Trouble{Problem: "watching: timeout", Since: now.Add(-5 * time.Second)}
				s.Bootstrap.Problem = "it goes to the same hub"
			},
			"BootstrapSecretError,HubKubeConfigError",
			"The hub has not answered since 2026-01-01T11:59:55Z: watching: timeout",
			0,
		},
		"the hub refuses the agent": {
			func(s *State) {
				s.Trouble = agent.Trouble{Problem: "renewing: Unauthorized", Since: now.Add(-time.Minute), Refused: true}
			},
			"BootstrapSecretFunctional,HubKubeConfigUnauthorized",
			"The hub has refused the agent since 2026-01-01T11:59:00Z: renewing: Unauthorized",
			30 * time.Second,
		},
		"not accepted yet: asked again": {
			func(s *State) { s.Hub = access.Answer{Refused: true, Missing: []string{"get leases"}} },
			"BootstrapSecretFunctional,HubKubeConfigUnauthorized",
			"get leases",
			30 * time.Second,
		},
		"the bootstrap token is refused": {
			func(s *State) { s.HubSecret, s.Bootstrap = nil, access.Answer{Refused: true, Missing: []string{"x"}} },
			"BootstrapSecretUnauthorized,HubKubeConfigSecretMissing",
			"refuses the bootstrap kubeconfig: x",
			30 * time.Second,
		},
		"the bootstrap hub is away": {func(s *State) { s.HubSecret, s.Bootstrap = nil, access.Answer{Problem: "timeout"} },
			"BootstrapSecretError,HubKubeConfigSecretMissing", "timeout", 30 * time.Second},
		"no hub of several is usable": {func(s *State) {
			s.HubSecret, s.Registration.Bootstrap, s.Hubs = nil, "", "no hub of the list is usable: hub-1: refused"
		}, "BootstrapSecretError,HubKubeConfigSecretMissing", "missing. no hub of the list is usable: hub-1: refused", 0},
		"the hub in use is away and no other is usable": {
			func(s *State) {
				s.Trouble, s.Hubs = agent.Trouble{
					Problem: "watching: timeout", Since: now.Add(-time.Minute),
				}, "secret hub-1 is still in use"
			},
			"BootstrapSecretFunctional,HubKubeConfigError",
			"timeout. secret hub-1 is still in use",
			0,
		},
		"what the registration waits for is said": {
			func(s *State) {
				s.HubSecret, s.Registration = nil, credential.Report{
					Bootstrap: bootstrap, Phase: credential.PhaseWaiting, Message: "request c1-x waits",
				}
			},
			"BootstrapSecretFunctional,HubKubeConfigSecretMissing",
			"request c1-x waits",
			0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := serving()
			tc.change(&s)
			p := Decide(s)
			c := apimeta.FindStatusCondition(
				p.Object.(*operatorv1.Klusterlet).Status.Conditions, operatorv1.ConditionHubConnectionDegraded,
			)
			require.Equal(t, metav1.ConditionTrue, c.Status)
			require.Equal(t, tc.reason, c.Reason)
			require.Contains(t, c.Message, tc.message)
			require.Equal(t, tc.retry, p.RequeueAfter)
		})
	}
	s := serving()
	s.Registration.Phase, s.HubSecret = credential.PhaseStopped, nil
	require.NotContains(
		t, conditions(t, Decide(s)), operatorv1.ConditionHubConnectionDegraded, "the hub has not been asked yet",
	)
}

func TestDenialIsAnEventOnce(t *testing.T) {
	s := serving()
	s.HubSecret, s.Registration = nil, credential.Report{
		Bootstrap: bootstrap, Phase: credential.PhaseDenied, Message: "denied: no",
	}
	p := Decide(s)
	require.Len(t, p.Events, 1)
	require.Equal(t, "CertificateRequestDenied", p.Events[0].Reason)
	s.Klusterlet = p.Object.(*operatorv1.Klusterlet)
	require.Empty(t, Decide(s).Events)
}

func TestStoppedWorksAreReported(t *testing.T) {
	s := serving()
	s.WorkProblem = "forbidden"
	require.Equal(t, "True UnavailablePods", conditions(t, Decide(s))[operatorv1.ConditionWorkDesiredDegraded])
}

func TestRemoval(t *testing.T) {
	deleted := func(k *operatorv1.Klusterlet) { k.DeletionTimestamp = &metav1.Time{Time: now} }
	p := Decide(serving(deleted))
	require.Equal(t, Plan{}.Settings, p.Settings)
	require.Nil(t, p.Object)
	require.False(t, p.Remove, "what talks to the hub stops first")
	require.NotZero(t, p.RequeueAfter)
	s := serving(deleted)
	s.Registration.Phase = credential.PhaseStopped
	require.True(t, Decide(s).Remove)
	s.Klusterlet.Finalizers = []string{"other"}
	require.False(t, Decide(s).Remove, "it is already removed, or never belonged to this agent")
}

func several(timeout int32, names ...string) operatorv1.BootstrapKubeConfigs {
	list := &operatorv1.LocalSecretsConfig{HubConnectionTimeoutSeconds: timeout}
	for _, name := range names {
		list.KubeConfigSecrets = append(list.KubeConfigSecrets, operatorv1.KubeConfigSecret{Name: name})
	}
	return operatorv1.BootstrapKubeConfigs{Type: operatorv1.BootstrapKubeConfigTypeLocalSecrets, LocalSecretsConfig: list}
}

func TestSpec(t *testing.T) {
	enable, disable := operatorv1.FeatureGateModeTypeEnable, operatorv1.FeatureGateModeTypeDisable
	for name, tc := range map[string]struct {
		change     func(*operatorv1.KlusterletSpec)
		want       func(*agent.Settings)
		conditions map[string]string
		message    string
		keep       bool
	}{
		"properties are reported where their gate is on": {
			change: func(s *operatorv1.KlusterletSpec) {
				s.RegistrationConfiguration = &operatorv1.RegistrationConfiguration{
					FeatureGates: []operatorv1.FeatureGate{{Feature: "ClusterProperty", Mode: enable}},
				}
			},
			want: func(s *agent.Settings) { s.Properties = true },
		},
		"settings are taken over": {
			change: func(s *operatorv1.KlusterletSpec) {
				s.Namespace = operatorv1.NamespaceAgent
				s.WorkConfiguration = &operatorv1.WorkAgentConfiguration{
					AppliedManifestWorkEvictionGracePeriod: &metav1.Duration{Duration: time.Minute},
					FeatureGates:                           []operatorv1.FeatureGate{{Feature: "RawFeedbackJsonString", Mode: enable}},
				}
				s.ExternalServerURLs = []operatorv1.ServerURL{{URL: "https://x", CABundle: []byte("ca")}}
				s.RegistrationConfiguration = &operatorv1.RegistrationConfiguration{
					ClientCertExpirationSeconds: 3600,
					ClusterAnnotations:          map[string]string{"agent.open-cluster-management.io/a": "1", "b": "2"},
					FeatureGates: []operatorv1.FeatureGate{{
						Feature: "ClusterClaim",
						Mode:    disable,
					}, {
						Feature: "AddonManagement",
						Mode:    disable,
					}},
					AddOnKubeClientRegistrationDriver: &operatorv1.AddOnRegistrationDriver{
						AuthType: "token", Token: &operatorv1.TokenConfig{ExpirationSeconds: 7200},
					},
					ClusterClaimConfiguration: &operatorv1.ClusterClaimConfiguration{MaxCustomClusterClaims: 5, ReservedClusterClaimSuffixes: []string{".x"}}}
			},
			want: func(s *agent.Settings) {
				s.ExternalServerURLs = []agent.ServerURL{{URL: "https://x", CABundle: []byte("ca")}}
				s.CertificateSeconds, s.Annotations = 3600, map[string]string{"agent.open-cluster-management.io/a": "1"}
				s.EvictionGrace, s.RawFeedback = time.Minute, true
				s.AddOns, s.AddOnDriver, s.AddOnTokenSeconds = false, "token", 7200
				s.Claims, s.MaxClaims, s.ReservedSuffixes = false, 5, []string{".x"}
			},
		},
		"a gate that does not exist": {
			change: func(s *operatorv1.KlusterletSpec) {
				s.WorkConfiguration = &operatorv1.WorkAgentConfiguration{
					FeatureGates: []operatorv1.FeatureGate{{Feature: "Nonsense", Mode: enable}},
				}
			},
			conditions: map[string]string{
				"ValidFeatureGates": "False InvalidFeatureGatesExisting", "Applied": "True KlusterletApplied",
			},
		},
		"what is not supported is named and the rest applied": {
			change: func(s *operatorv1.KlusterletSpec) {
				s.DeployOption.Mode, s.ImagePullSpec, s.Namespace = operatorv1.InstallModeHosted, "example.com/agent:v1", "open-cluster-management-x"
				s.RegistrationConfiguration = &operatorv1.RegistrationConfiguration{
					ClientCertExpirationSeconds: 7200,
					BootstrapKubeConfigs:        operatorv1.BootstrapKubeConfigs{Type: operatorv1.BootstrapKubeConfigTypeLocalSecrets},
					RegistrationDriver:          operatorv1.RegistrationDriver{AuthType: "grpc"},
					FeatureGates: []operatorv1.FeatureGate{{
						Feature: "V1beta1CSRAPICompatibility",
						Mode:    enable,
					}, {
						Feature: "ClusterProperty",
						Mode:    disable,
					}}}
			},
			want: func(s *agent.Settings) { s.CertificateSeconds = 7200 },
			conditions: map[string]string{
				"SpecSupported": "False NotSupported", "ValidFeatureGates": "True FeatureGatesAllValid",
			},
			message: "deployOption.mode Hosted, imagePullSpec, namespace (install the agent there), " +
				"registrationConfiguration.bootstrapKubeConfigs (enable the feature gate MultipleHubs), " +
				"registrationConfiguration.featureGates V1beta1CSRAPICompatibility, registrationConfiguration.registrationDriver grpc",
		},
		"rates that the API fills in": {
			change: func(s *operatorv1.KlusterletSpec) {
				s.RegistrationConfiguration = &operatorv1.RegistrationConfiguration{KubeAPIQPS: 50, KubeAPIBurst: 100}
				s.WorkConfiguration = &operatorv1.WorkAgentConfiguration{KubeAPIQPS: 50, KubeAPIBurst: 100, HubKubeAPIQPS: 50, HubKubeAPIBurst: 100}
			},
			conditions: map[string]string{"SpecSupported": "True AllFieldsSupported"},
		},
		"rates of an agent of several processes": {
			change: func(s *operatorv1.KlusterletSpec) {
				s.RegistrationConfiguration = &operatorv1.RegistrationConfiguration{KubeAPIQPS: 7}
				s.WorkConfiguration = &operatorv1.WorkAgentConfiguration{
					KubeAPIBurst: 7, HubKubeAPIQPS: 7, StatusSyncInterval: &metav1.Duration{Duration: time.Second},
				}
			},
			conditions: map[string]string{"SpecSupported": "False NotSupported"},
			message: "registrationConfiguration.kubeAPIQPS and kubeAPIBurst, workConfiguration.hubKubeAPIQPS and hubKubeAPIBurst, " +
				"workConfiguration.kubeAPIQPS and kubeAPIBurst, workConfiguration.statusSyncInterval",
		},
		"an image of the field's repositories means ours": {
			change: func(s *operatorv1.KlusterletSpec) {
				s.ImagePullSpec = "quay.io/open-cluster-management/registration-operator:v1"
			},
			conditions: map[string]string{"SpecSupported": "True AllFieldsSupported"},
		},
		"several hubs and labels": {
			change: func(s *operatorv1.KlusterletSpec) {
				s.RegistrationConfiguration = &operatorv1.RegistrationConfiguration{
					ClusterLabels:        map[string]string{"region": "north"},
					FeatureGates:         []operatorv1.FeatureGate{{Feature: "MultipleHubs", Mode: enable}},
					BootstrapKubeConfigs: several(240, "hub-1", "hub-2"),
				}
			},
			want: func(s *agent.Settings) {
				s.Labels, s.Hubs, s.HubTimeout = map[string]string{"region": "north"}, []string{"hub-1", "hub-2"}, 4*time.Minute
			},
			conditions: map[string]string{"SpecSupported": "True AllFieldsSupported", "Applied": "True KlusterletApplied"},
		},
		"a list without a timeout has the default": {
			change: func(s *operatorv1.KlusterletSpec) {
				s.RegistrationConfiguration = &operatorv1.RegistrationConfiguration{
					FeatureGates: []operatorv1.FeatureGate{{Feature: "MultipleHubs", Mode: enable}}, BootstrapKubeConfigs: several(0, "hub-1", "hub-2")}
			},
			want: func(s *agent.Settings) { s.Hubs, s.HubTimeout = []string{"hub-1", "hub-2"}, 10*time.Minute },
		},
		"fewer than two hubs": {
			change: func(s *operatorv1.KlusterletSpec) {
				s.RegistrationConfiguration = &operatorv1.RegistrationConfiguration{
					FeatureGates: []operatorv1.FeatureGate{{Feature: "MultipleHubs", Mode: enable}}, BootstrapKubeConfigs: several(0, "hub-1")}
			},
			conditions: map[string]string{"Applied": "False KlusterletApplyFailed"}, keep: true,
		},
		"settings that cannot work change nothing": {
			change: func(s *operatorv1.KlusterletSpec) {
				s.RegistrationConfiguration = &operatorv1.RegistrationConfiguration{ClientCertExpirationSeconds: 5}
			},
			want:       func(s *agent.Settings) { s.CertificateSeconds = 5 },
			conditions: map[string]string{"Applied": "False KlusterletApplyFailed"}, keep: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := Decide(serving(func(k *operatorv1.Klusterlet) { tc.change(&k.Spec) }))
			want := &agent.Settings{
				ClusterName: "c1", AgentName: "uid", WorkAgentID: "uid", Claims: true, AddOns: true, HealthPeriod: time.Minute, MaxClaims: 20,
			}
			if tc.want != nil {
				tc.want(want)
			}
			require.Empty(t, cmp.Diff(want, p.Settings))
			require.Equal(t, tc.keep, p.Keep)
			got := conditions(t, p)
			for kind, value := range tc.conditions {
				require.Equal(t, value, got[kind], kind)
			}
			if tc.message != "" {
				c := apimeta.FindStatusCondition(p.Object.(*operatorv1.Klusterlet).Status.Conditions, "SpecSupported")
				require.Contains(t, c.Message, tc.message)
			}
		})
	}
}

// TestWhatOnlyADeploymentCanHaveIsNamed until the Deployment has it: the agent does not change its own.
func TestWhatOnlyADeploymentCanHaveIsNamed(t *testing.T) {
	s := serving(func(k *operatorv1.Klusterlet) {
		k.Spec.NodePlacement.NodeSelector, k.Spec.PriorityClassName = map[string]string{"a": "b"}, "high"
		k.Spec.ResourceRequirement = &operatorv1.ResourceRequirement{Type: operatorv1.ResourceQosClassBestEffort}
	})
	s.Pod = &shared.Pod{Containers: []shared.Container{{}}}
	p := Decide(s)
	require.Equal(t, "False NotSupported", conditions(t, p)["SpecSupported"])
	c := apimeta.FindStatusCondition(p.Object.(*operatorv1.Klusterlet).Status.Conditions, "SpecSupported")
	const fix = " (the Deployment of the agent is its installer's: repeat kubectl ocm join, which changes it)"
	require.Contains(t, c.Message, ": nodePlacement"+fix+", priorityClassName"+fix)
	require.NotContains(t, c.Message, "resourceRequirement")
	require.Equal(t, "True KlusterletApplied", conditions(t, p)["Applied"])
	s.Pod.NodeSelector, s.Pod.PriorityClassName = map[string]string{"a": "b"}, "high"
	require.Equal(t, "True AllFieldsSupported", conditions(t, Decide(s))["SpecSupported"])
}

func TestNothingIsRegisteredBeforeTheSecretsAreKnown(t *testing.T) {
	s := serving()
	s.SecretsKnown = false
	require.True(t, Decide(s).Keep)
}

func TestTheNameOfTheCertificateCountsAndNotAnEditedSpec(t *testing.T) {
	edited := serving(func(k *operatorv1.Klusterlet) { k.Spec.ClusterName = "other" })
	edited.Joined = agent.Identity{Cluster: "c1", Agent: "a1"}
	p := Decide(edited)
	require.Equal(t, "c1", p.Settings.ClusterName)
	require.Equal(t, "a1", p.Settings.AgentName, "an adopted agent keeps its certificate")
	require.Equal(t, string(edited.Klusterlet.UID), p.Settings.WorkAgentID)
	require.False(t, p.Keep)
	require.Equal(t, "False NotSupported", conditions(t, p)["SpecSupported"])
	c := apimeta.FindStatusCondition(p.Object.(*operatorv1.Klusterlet).Status.Conditions, "SpecSupported")
	require.Contains(
		t, c.Message,
		"clusterName other (the agent is joined as c1 and keeps that name; kubectl ocm join c1 corrects the spec, kubectl ocm join other --rejoin",
	)

	emptied := serving(func(k *operatorv1.Klusterlet) { k.Spec.ClusterName = "" })
	emptied.Joined = agent.Identity{Cluster: "c1", Agent: "a1"}
	p = Decide(emptied)
	require.Equal(t, "c1", p.Settings.ClusterName)
	require.Equal(t, "True AllFieldsSupported", conditions(t, p)["SpecSupported"], "an empty name requests no name")

	p = Decide(serving(func(k *operatorv1.Klusterlet) { k.Spec.ClusterName = "other" }))
	require.Equal(t, "other", p.Settings.ClusterName, "before it has joined, the spec counts")
}

func TestTheNamespaceOfAddOnsIsPutBackOnceItIsGone(t *testing.T) {
	applied := func(ns shared.Namespace) (version string, found bool) {
		s := serving()
		s.AddOnNamespace = ns
		for _, a := range reconcile.Of[reconcile.Apply](Decide(s).Writes) {
			if a.Object.GetName() == operatorv1.NamespaceAgentAddOn {
				require.Equal(t, "klusterlet", a.Object.GetLabels()[operatorv1.LabelCreatedByKlusterlet])
				return a.LiveVersion, true
			}
		}
		return "", false
	}
	for name, tc := range map[string]struct {
		live shared.Namespace
		want bool
	}{
		"it is gone":             {shared.Namespace{}, true},
		"it is there":            {shared.Namespace{ResourceVersion: "7"}, true},
		"it is still on its way": {shared.Namespace{ResourceVersion: "7", Leaving: true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			version, found := applied(tc.live)
			require.Equal(t, tc.want, found)
			if found {
				require.Equal(t, tc.live.ResourceVersion, version, "the executor sends nothing while the namespace is unchanged")
			}
		})
	}
}

func TestAgentsOfOneClusterDoNotRelabelWhatTheyShareInTurns(t *testing.T) {
	for name, tc := range map[string]struct {
		labelled string
		want     string
	}{
		"not labelled":                     {"", "klusterlet"},
		"labelled as its own":              {"klusterlet", "klusterlet"},
		"labelled as another's that stays": {"second", "second"},
		"labelled as another's that left":  {"third", "klusterlet"},
	} {
		t.Run(name, func(t *testing.T) {
			s := serving()
			s.Others = []string{"second"}
			s.AddOnNamespace.Owner = tc.labelled
			for n, d := range s.Live {
				d.Owner = tc.labelled
				s.Live[n] = d
			}
			applied := 0
			for _, w := range Decide(s).Writes {
				if a, ok := w.(reconcile.Apply); ok {
					applied++
					require.Equal(t, tc.want, a.Object.(*unstructured.Unstructured).GetLabels()[operatorv1.LabelCreatedByKlusterlet])
				}
			}
			require.Equal(t, len(s.Wanted)+1, applied)
		})
	}
}

func TestTheStatusNamesAllPartsOfTheAgent(t *testing.T) {
	s := serving()
	s.Deployment = 4
	k := Decide(s).Object.(*operatorv1.Klusterlet)
	require.Equal(
		t,
		[]operatorv1.GenerationStatus{
			{
				Group: "apps", Version: "v1", Resource: "deployments", Namespace: s.Namespace, Name: "klusterlet-agent",
				LastGeneration: 4,
			},
		},
		k.Status.Generations,
	)
	objects, err := config.Objects(
		config.Options{Image: "i", ClusterName: "c1", Namespace: s.Namespace, NarrowRights: true},
	)
	require.NoError(t, err)
	var want, got []string
	for _, u := range objects {
		if u.GetKind() != "Klusterlet" && u.GetKind() != "CustomResourceDefinition" {
			resource := reconcile.ResourceOf(u.GroupVersionKind())
			want = append(want, resource.String()+" "+u.GetNamespace()+"/"+u.GetName())
		}
	}
	for _, r := range k.Status.RelatedResources {
		if r.Resource != "customresourcedefinitions" {
			resource := schema.GroupVersionResource{Group: r.Group, Version: r.Version, Resource: r.Resource}
			got = append(got, resource.String()+" "+r.Namespace+"/"+r.Name)
		}
	}
	require.ElementsMatch(t, want, got)
	require.Len(t, k.Status.RelatedResources, len(got)+len(s.Wanted))
}

func TestAHubThatIsAwayForAMomentIsNotTold(t *testing.T) {
	s := serving()
	s.Trouble = agent.Trouble{Problem: "watching: refused", Since: now.Add(-2 * time.Second)}
	p := Decide(s)
	require.Equal(t, "False HubConnectionFunctional", conditions(t, p)["HubConnectionDegraded"])
	require.Equal(t, 3*time.Second, p.RequeueAfter, "it is checked again after patience")
}

func TestSpecThatCannotBeReadEndsNothing(t *testing.T) {
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "operator.open-cluster-management.io/v1", "kind": "Klusterlet",
		"metadata": map[string]any{"name": "klusterlet", "generation": int64(2)},
		// The definition's pattern admits it.
		"spec": map[string]any{
			"workConfiguration": map[string]any{"appliedManifestWorkEvictionGracePeriod": "99999999999999999999h"},
		},
	}}
	is, ok := settings.Keep(logr.Discard())(u)
	require.True(t, ok, "what is not cached counts as removed, and stops the registration")
	s := serving()
	s.Klusterlet, s.Unreadable = is.Klusterlet, is.Problem
	p := Decide(s)
	require.True(t, p.Keep)
	require.Equal(t, "False KlusterletApplyFailed", conditions(t, p)["Applied"])
	require.NotContains(t, conditions(t, p), "SpecSupported", "what it asks for is unknown")
}
