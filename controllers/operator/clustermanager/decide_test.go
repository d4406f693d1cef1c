// SPDX-License-Identifier: Apache-2.0

package clustermanager

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubectl-ocm/kubectl-ocm/config/hub"
	"github.com/kubectl-ocm/kubectl-ocm/internal/certs"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

var now = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

func theManager(change ...func(*operatorv1.ClusterManager)) *operatorv1.ClusterManager {
	cm := &operatorv1.ClusterManager{
		TypeMeta:   metav1.TypeMeta{APIVersion: operatorv1.GroupVersion.String(), Kind: "ClusterManager"},
		ObjectMeta: metav1.ObjectMeta{Name: "cluster-manager", Generation: 3},
	}
	for _, c := range change {
		c(cm)
	}
	return cm
}

// state returns a State in which everything exists and works.
func state(t *testing.T, change ...func(*State)) State {
	t.Helper()
	policy := certs.DefaultPolicy()
	set, _, err := policy.Ensure(certs.Set{}, ServingNames(), now)
	require.NoError(t, err)
	s := State{
		ClusterManager: theManager(),
		Certs:          set,
		CertsNext:      policy.Next(set),
		Stored:         true,
		Versions:       map[string]string{},
		Held:           map[string]bool{},
		Now:            now,
	}
	for _, h := range hooks {
		s.Hooks = append(s.Hooks, Hook{Name: h.name, Version: "1", Wanted: h.object(place{namespace: hub.Namespace}, set.Bundle)})
	}
	for _, name := range definitionNames {
		u := &unstructured.Unstructured{}
		u.SetName(name)
		s.Definitions = append(s.Definitions, Definition{Name: name, Version: "1", Established: true, Wanted: u})
	}
	for _, c := range change {
		c(&s)
	}
	return s
}

func TestDecideGoesAsFarAsItCan(t *testing.T) {
	stopped := errors.New("not started")
	for name, tc := range map[string]struct {
		change      func(*State)
		wantApply   int
		wantRun     bool
		wantFailure string
		wantApplied metav1.ConditionStatus
		progressing metav1.ConditionStatus
		reason      string
		message     string
		degraded    metav1.ConditionStatus
	}{
		"everything works": {
			func(*State) {},
			5 + 12 + 14,
			true,
			operatorv1.ReasonWebhookApplyFailed,
			"True",
			"False",
			operatorv1.ReasonClusterManagerUpToDate,
			"up to date",
			"False",
		},
		"certificates come first": {
			func(s *State) { s.Stored, s.Loops = false, stopped },
			5, false, operatorv1.ReasonHubResourceApplyFailed, "", "True", operatorv1.ReasonClusterManagerDeploymentRolling,
			"certificates", "True",
		},
		"then the APIs": {
			func(s *State) { s.Definitions[2].Established, s.Loops = false, stopped },
			5 + 12, false, operatorv1.ReasonCRDApplyFailed, "", "True", operatorv1.ReasonClusterManagerDeploymentRolling,
			"managedclustersets.cluster", "True",
		},
		"then admission has to be served": {
			func(s *State) { s.Serving, s.Loops = errors.New("no port"), stopped },
			5 + 12, false, operatorv1.ReasonCRDApplyFailed, "", "True", operatorv1.ReasonClusterManagerDeploymentRolling,
			"no port", "True",
		},
		"and be reached": {
			func(s *State) { s.Unready, s.Loops = "the hub's pod to be available", stopped },
			5 + 12, false, operatorv1.ReasonCRDApplyFailed, "", "True", operatorv1.ReasonClusterManagerDeploymentRolling, "pod",
			"True",
		},
		"then it is registered": {
			func(s *State) { s.Hooks[0].Version = ""; s.Loops = stopped },
			5 + 12 + 14, false, operatorv1.ReasonWebhookApplyFailed, "", "True",
			operatorv1.ReasonClusterManagerDeploymentRolling, "registered", "True",
		},
		"then the loops start": {
			func(s *State) { s.Loops = stopped },
			5 + 12 + 14, true, operatorv1.ReasonWebhookApplyFailed, "True", "True", reasonStarting, "not started", "True",
		},
		"loops that run go on while something is repaired": {
			func(s *State) { s.Definitions[0].Established = false },
			5 + 12, true, operatorv1.ReasonCRDApplyFailed, "", "True", operatorv1.ReasonClusterManagerDeploymentRolling,
			"clustermanagementaddons", "",
		},
		"APIs of a newer release are left alone": {
			func(s *State) { s.Definitions[0].Newer = "9.9.9" },
			5 + 11 + 14, true, operatorv1.ReasonWebhookApplyFailed, "True", "False", operatorv1.ReasonClusterManagerUpToDate, "",
			"False",
		},
		"what is there already is not written": {
			func(s *State) {
				s.Held[operatorv1.SecretSigner], s.Held[operatorv1.ConfigMapCABundle] = true, true
				s.Hooks[1].Wanted = nil
			},
			3 + 12 + 13, true, operatorv1.ReasonWebhookApplyFailed, "True", "False", operatorv1.ReasonClusterManagerUpToDate, "",
			"False",
		},
		"a definition that is known to be right is not written": {
			func(s *State) { s.Definitions[0].Wanted = nil },
			5 + 11 + 14, true, operatorv1.ReasonWebhookApplyFailed, "True", "False", operatorv1.ReasonClusterManagerUpToDate, "",
			"False",
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := Decide(state(t, tc.change))
			require.Len(t, reconcile.Of[reconcile.Apply](d.Writes), tc.wantApply)
			require.Equal(t, tc.wantRun, d.Run)
			require.Equal(t, tc.wantFailure, d.OnFailure.Reason)
			require.Greater(t, d.RequeueAfter, 23*24*time.Hour, "it is requeued when certificates have to be renewed")
			cm := d.Object.(*operatorv1.ClusterManager)
			require.Equal(t, []string{operatorv1.FinalizerClusterManager}, cm.Finalizers)
			require.EqualValues(t, 3, cm.Status.ObservedGeneration)
			require.Equal(t, tc.wantApplied, status(cm, operatorv1.ConditionApplied))
			c := apimeta.FindStatusCondition(cm.Status.Conditions, operatorv1.ConditionProgressing)
			require.Equal(t, tc.progressing, c.Status)
			require.Equal(t, tc.reason, c.Reason)
			require.Contains(t, c.Message, tc.message)
			require.Equal(t, tc.degraded, status(cm, operatorv1.ConditionHubRegistrationDegraded))
			require.Equal(t, tc.degraded, status(cm, operatorv1.ConditionHubPlacementDegraded))
		})
	}
}

func status(cm *operatorv1.ClusterManager, kind string) metav1.ConditionStatus {
	if c := apimeta.FindStatusCondition(cm.Status.Conditions, kind); c != nil {
		return c.Status
	}
	return ""
}

func TestTheHubDoesNotStartBesideAnother(t *testing.T) {
	for name, change := range map[string]func(*State){
		reasonSplitLayout: func(s *State) { s.Split = []string{"cluster-manager-registration-controller"} },
		reasonHostedMode:  func(s *State) { s.ClusterManager.Spec.DeployOption.Mode = operatorv1.InstallModeHosted },
	} {
		d := Decide(state(t, change, func(s *State) { s.Loops = errors.New("not started") }))
		require.False(t, d.Run)
		require.Empty(t, reconcile.Of[reconcile.Apply](d.Writes))
		require.Equal(t, name == reasonHostedMode, Decide(state(t, change)).Run, "a wrong mode ends nothing")
		c := apimeta.FindStatusCondition(
			d.Object.(*operatorv1.ClusterManager).Status.Conditions, operatorv1.ConditionHubRegistrationDegraded,
		)
		require.Equal(t, name, c.Reason)
	}
}

func TestRemoval(t *testing.T) {
	going := func(s *State) {
		s.ClusterManager.DeletionTimestamp = &metav1.Time{Time: now}
		s.ClusterManager.Finalizers = []string{operatorv1.FinalizerClusterManager, "other"}
	}
	d := Decide(state(t, going, func(s *State) { s.Remaining = "ManagedClusters to go: c1" }))
	require.False(t, d.Run, "loops would recreate what is removed")
	require.Empty(t, reconcile.Of[reconcile.Apply](d.Writes))
	require.Equal(t, retryRemoval, d.RequeueAfter)
	require.Len(t, d.Events, 1)
	cm := d.Object.(*operatorv1.ClusterManager)
	c := apimeta.FindStatusCondition(cm.Status.Conditions, operatorv1.ConditionProgressing)
	require.Equal(t, "Waiting for ManagedClusters to go: c1", c.Message)
	require.Len(t, cm.Finalizers, 2)

	d = Decide(state(t, going, func(s *State) { s.ClusterManager.Status = cm.Status; s.Remaining = "API x to go" }))
	require.False(t, d.Run)
	require.Empty(t, d.Events)
	d = Decide(state(t, going, func(s *State) { s.Removed = true }))
	require.Equal(t, []string{"other"}, d.Object.(*operatorv1.ClusterManager).Finalizers)
}

func TestFeatures(t *testing.T) {
	gates := func(names ...string) []operatorv1.FeatureGate {
		var out []operatorv1.FeatureGate
		for _, n := range names {
			out = append(out, operatorv1.FeatureGate{Feature: n, Mode: operatorv1.FeatureGateModeTypeEnable})
		}
		return out
	}
	off := []operatorv1.FeatureGate{{
		Feature: gateDefaultClusterSet,
		Mode:    operatorv1.FeatureGateModeTypeDisable,
	}, {
		Feature: gateResourceCleanup,
	}}
	for name, tc := range map[string]struct {
		spec        operatorv1.ClusterManagerSpec
		want        Features
		unknown     []string
		unsupported []string
	}{
		"nothing is asked for": {want: Features{DefaultClusterSet: true, ResourceCleanup: true, AddOnManagement: true}},
		"gates off": {spec: operatorv1.ClusterManagerSpec{
			RegistrationConfiguration: &operatorv1.RegistrationHubConfiguration{FeatureGates: off},
			AddOnManagerConfiguration: &operatorv1.AddOnManagerConfiguration{
				FeatureGates: []operatorv1.FeatureGate{{Feature: gateAddOnManagement, Mode: operatorv1.FeatureGateModeTypeDisable}},
			},
		}},
		"users count only with their gate": {
			spec: operatorv1.ClusterManagerSpec{
				RegistrationConfiguration: &operatorv1.RegistrationHubConfiguration{AutoApproveUsers: []string{"u"}},
			},
			want: Features{DefaultClusterSet: true, ResourceCleanup: true, AddOnManagement: true},
		},
		"the driver's identities replace the older field": {
			spec: operatorv1.ClusterManagerSpec{RegistrationConfiguration: &operatorv1.RegistrationHubConfiguration{
				AutoApproveUsers: []string{"old"}, FeatureGates: gates(GateAutoApproval),
				RegistrationDrivers: []operatorv1.RegistrationDriverHub{
					{AuthType: operatorv1.AuthTypeCSR, CSR: &operatorv1.CSRConfig{AutoApprovedIdentities: []string{"new"}}},
				},
			}},
			want: Features{DefaultClusterSet: true, ResourceCleanup: true, AddOnManagement: true, AutoApprove: []string{"new"}},
		},
		"the older field alone": {
			spec: operatorv1.ClusterManagerSpec{
				RegistrationConfiguration: &operatorv1.RegistrationHubConfiguration{
					AutoApproveUsers: []string{"old"}, FeatureGates: gates(GateAutoApproval),
				},
			},
			want: Features{DefaultClusterSet: true, ResourceCleanup: true, AddOnManagement: true, AutoApprove: []string{"old"}},
		},
		"clusters of Cluster API are imported": {
			spec: operatorv1.ClusterManagerSpec{RegistrationConfiguration: &operatorv1.RegistrationHubConfiguration{
				FeatureGates:          gates(gateClusterImporter),
				ImporterConfiguration: &operatorv1.ImporterConfiguration{Renderers: []string{"render-auto"}},
			}},
			want: Features{
				DefaultClusterSet: true, ResourceCleanup: true, AddOnManagement: true, ClusterImporter: true, Renderers: []string{"render-auto"},
			},
		},
		"renderers alone import nothing": {
			spec: operatorv1.ClusterManagerSpec{RegistrationConfiguration: &operatorv1.RegistrationHubConfiguration{
				ImporterConfiguration: &operatorv1.ImporterConfiguration{Renderers: []string{"render-auto"}},
			}},
			want: Features{DefaultClusterSet: true, ResourceCleanup: true, AddOnManagement: true},
		},
		"what is not known or not served is named": {
			spec: operatorv1.ClusterManagerSpec{
				RegistrationConfiguration: &operatorv1.RegistrationHubConfiguration{
					FeatureGates:        gates("Nonsense", "V1beta1CSRAPICompatibility"),
					RegistrationDrivers: []operatorv1.RegistrationDriverHub{{AuthType: operatorv1.AuthTypeGRPC}},
				},
				WorkConfiguration: &operatorv1.WorkConfiguration{
					WorkDriver:   "mqtt",
					FeatureGates: gates(gateReplicaSet, gateNilExecutor, gateCleanUpCompleted, "Other"),
				},
				AddOnManagerConfiguration: &operatorv1.AddOnManagerConfiguration{FeatureGates: gates("AddonManagement")},
				PlacementConfiguration: &operatorv1.PlacementConfiguration{
					FeatureGates: gates(gatePlacementDebug, "SIGPlacementDecision"),
				},
			},
			want: Features{
				DefaultClusterSet:            true,
				ResourceCleanup:              true,
				AddOnManagement:              true,
				ManifestWorkReplicaSet:       true,
				NilExecutorValidating:        true,
				CleanUpCompletedManifestWork: true,
				PlacementDebugServer:         true,
			},
			unknown:     []string{"Nonsense", "Other"},
			unsupported: []string{"SIGPlacementDecision", "V1beta1CSRAPICompatibility", "registration driver grpc", "work driver mqtt"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f, unknown, unsupported := parseFeatures(tc.spec)
			require.True(t, tc.want.Equal(f), "%+v", f)
			require.Equal(t, tc.want.PlacementDebugServer, f.PlacementDebugServer)
			require.Equal(t, tc.unknown, unknown)
			require.Equal(t, tc.unsupported, unsupported)
			d := Decide(state(t, func(s *State) { s.ClusterManager.Spec = tc.spec }))
			c := apimeta.FindStatusCondition(
				d.Object.(*operatorv1.ClusterManager).Status.Conditions, operatorv1.ConditionValidFeatureGates,
			)
			require.Equal(t, len(unknown)+len(unsupported) == 0, c.Status == metav1.ConditionTrue)
			require.True(t, d.Run, "the rest is in effect")
		})
	}
}

// The certificate of the placement debug endpoint exists while its gate is on.
func TestTheDebugEndpointHasACertificateWhileItIsServed(t *testing.T) {
	policy := certs.DefaultPolicy()
	on := Features{PlacementDebugServer: true}
	set, _, err := policy.Ensure(certs.Set{}, servingNames(on), now)
	require.NoError(t, err)
	debug := func(d Decision) (applied, deleted []string) {
		for _, a := range reconcile.Of[reconcile.Apply](d.Writes) {
			if a.Object.GetName() == operatorv1.SecretPlacementDebugServingCert {
				applied = append(applied, a.Object.GetNamespace())
			}
		}
		for _, t := range reconcile.Of[reconcile.Remove](d.Writes) {
			deleted = append(deleted, t.Namespace+"/"+t.Name)
		}
		return applied, deleted
	}
	gate := operatorv1.ClusterManagerSpec{PlacementConfiguration: &operatorv1.PlacementConfiguration{
		FeatureGates: []operatorv1.FeatureGate{{Feature: gatePlacementDebug, Mode: operatorv1.FeatureGateModeTypeEnable}},
	}}
	applied, deleted := debug(
		Decide(state(t, func(s *State) { s.ClusterManager.Spec, s.Certs, s.Held = gate, set, map[string]bool{} })),
	)
	require.Equal(t, []string{"open-cluster-management-hub"}, applied)
	require.Empty(t, deleted)
	applied, deleted = debug(Decide(state(t)))
	require.Empty(t, applied)
	require.Empty(t, deleted, "there is none")
	_, deleted = debug(
		Decide(state(t, func(s *State) { s.Versions = map[string]string{operatorv1.SecretPlacementDebugServingCert: "1"} })),
	)
	require.Equal(t, []string{"open-cluster-management-hub/placement-debug-serving-cert"}, deleted)
	require.True(t, on.Equal(Features{}), "it does not restart the loops")
}

func TestReleases(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		want bool
	}{
		{"1.2.4", "v1.2.3", true},
		{"1.2.3", "v1.2.3", false},
		{"1.2.2", "v1.2.3", false},
		{"0.1.0", "v0.0.0-dev", true},
		{"rubbish", "v0.1.0", false},
		{"0.0.0-dev", "v0.1.0", false},
	} {
		require.Equal(t, tc.want, isNewer(tc.a, tc.b), "%s %s", tc.a, tc.b)
	}
}

func TestLabelsForClusters(t *testing.T) {
	labelled := func(cm *operatorv1.ClusterManager) {
		cm.Labels = map[string]string{
			"app": "x", "team": "a", "stage": "prod", "open-cluster-management.io/x": "y",
			operatorv1.LabelCreatedByClusterManager: "z",
		}
	}
	for name, tc := range map[string]struct {
		sync bool
		want map[string]string
	}{
		"those of the command line":                       {false, map[string]string{"team": "b"}},
		"and the ClusterManager's own, where it is asked": {true, map[string]string{"team": "b", "stage": "prod"}},
	} {
		t.Run(name, func(t *testing.T) {
			given := map[string]string{"team": "b"}
			d := Decide(
				state(t, func(s *State) { s.ClusterManager, s.Labels, s.SyncLabels = theManager(labelled), given, tc.sync }),
			)
			require.Equal(t, tc.want, d.Features.Labels)
			require.Equal(t, map[string]string{"team": "b"}, given)
			require.False(
				t, d.Features.Equal(Features{DefaultClusterSet: true, ResourceCleanup: true, AddOnManagement: true}),
				"the loops start again with other labels",
			)
		})
	}
}

func TestCheckLabels(t *testing.T) {
	for name, tc := range map[string]struct {
		labels map[string]string
		want   string
	}{
		"none":                 {nil, ""},
		"plain ones":           {map[string]string{"team": "a", "example.com/x": ""}, ""},
		"a key that is none":   {map[string]string{"a b": "x"}, `label key "a b"`},
		"a value that is none": {map[string]string{"a": "x y"}, `value "x y" of label a`},
		"whose an object is":   {map[string]string{"open-cluster-management.io/cluster-name": "x"}, "choose another key"},
		"another key of the API": {
			map[string]string{"cluster.open-cluster-management.io/clusterset": "x"},
			"choose another key",
		},
		"a key that looks alike": {map[string]string{"my-open-cluster-management.io/x": "y"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := CheckLabels(tc.labels)
			if tc.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tc.want)
		})
	}
}

// TestAWebhookThatHangsHoldsNobodyUp: the API server waits for ten seconds at most, and each
// webhook has a failure policy for that case.
func TestAWebhookThatHangsHoldsNobodyUp(t *testing.T) {
	policies := map[string]admissionregistrationv1.FailurePolicyType{}
	note := func(name string, seconds *int32, policy *admissionregistrationv1.FailurePolicyType) {
		require.NotNil(t, seconds, name)
		require.NotNil(t, policy, name)
		require.Positive(t, *seconds, name)
		require.LessOrEqual(t, *seconds, int32(10), name)
		policies[name] = *policy
	}
	for _, h := range hooks {
		switch o := h.object(place{namespace: hub.Namespace}, nil).(type) {
		case *admissionregistrationv1.MutatingWebhookConfiguration:
			require.Len(t, o.Webhooks, 1)
			note(o.Name, o.Webhooks[0].TimeoutSeconds, o.Webhooks[0].FailurePolicy)
		case *admissionregistrationv1.ValidatingWebhookConfiguration:
			require.Len(t, o.Webhooks, 1)
			note(o.Name, o.Webhooks[0].TimeoutSeconds, o.Webhooks[0].FailurePolicy)
		default:
			t.Fatalf("%s is a %T", h.name, o)
		}
	}
	require.Equal(t, map[string]admissionregistrationv1.FailurePolicyType{
		"managedclustermutators.admission.cluster.open-cluster-management.io":             admissionregistrationv1.Fail,
		"managedclustervalidators.admission.cluster.open-cluster-management.io":           admissionregistrationv1.Fail,
		"managedclustersetbindingvalidators.admission.cluster.open-cluster-management.io": admissionregistrationv1.Fail,
		"managedclustersetvalidators.admission.cluster.open-cluster-management.io":        admissionregistrationv1.Ignore,
		"manifestworkreplicasetvalidators.admission.work.open-cluster-management.io":      admissionregistrationv1.Fail,
		"manifestworkvalidators.admission.work.open-cluster-management.io":                admissionregistrationv1.Fail,
		"placementvalidators.admission.cluster.open-cluster-management.io":                admissionregistrationv1.Ignore,
		"addontemplatevalidators.admission.addon.open-cluster-management.io":              admissionregistrationv1.Fail,
		"managedclusteraddonstatusvalidators.admission.addon.open-cluster-management.io":  admissionregistrationv1.Fail,
		"managedclusteraddonvalidators.admission.addon.open-cluster-management.io":        admissionregistrationv1.Fail,
		"managedclusterstatusvalidators.admission.cluster.open-cluster-management.io":     admissionregistrationv1.Ignore,
		"clusternamespacevalidators.admission.cluster.open-cluster-management.io":         admissionregistrationv1.Ignore,
		"manifestworkstatusvalidators.admission.work.open-cluster-management.io":          admissionregistrationv1.Ignore,
		"clusterpermissionvalidators.admission.rbac.open-cluster-management.io":           admissionregistrationv1.Fail,
	}, policies)
}
