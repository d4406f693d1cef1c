// SPDX-License-Identifier: Apache-2.0

package check

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	confighub "github.com/kubectl-ocm/kubectl-ocm/config/hub"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/addon"
)

// longAgo is long enough before the checks for every step to be overdue.
var longAgo = metav1.NewTime(checkedAt.Add(-time.Hour))

// wellAddOn is a healthy add-on with templates, on cluster c1; tests change it.
func wellAddOn() *addOnFleet {
	a := &addonv1alpha1.ClusterManagementAddOn{}
	a.Name = "metrics"
	a.Spec.InstallStrategy.Type = addonv1alpha1.InstallStrategyPlacements
	ref := addonv1alpha1.PlacementRef{Namespace: "apps", Name: "p"}
	a.Spec.InstallStrategy.Placements = []addonv1alpha1.PlacementStrategy{{PlacementRef: ref}}
	a.Spec.SupportedConfigs = []addonv1alpha1.ConfigMeta{{
		ConfigGroupResource: addonv1alpha1.ConfigGroupResource{Group: addonv1alpha1.GroupName,
			Resource: addonv1alpha1.ResourceTemplate},
		DefaultConfig: &addonv1alpha1.ConfigReferent{Name: "metrics-1"},
	}}
	one := &addonv1alpha1.ManagedClusterAddOn{}
	one.Name, one.Namespace, one.CreationTimestamp = "metrics", "c1", longAgo
	one.Status.Conditions = []metav1.Condition{
		{Type: addonv1alpha1.ConditionRegistrationApplied, Status: metav1.ConditionTrue},
		{Type: addonv1alpha1.ConditionManifestApplied, Status: metav1.ConditionTrue},
		{Type: addonv1alpha1.ConditionAvailable, Status: metav1.ConditionTrue, LastTransitionTime: longAgo},
	}
	p := &clusterv1beta1.Placement{}
	p.CreationTimestamp = longAgo
	p.Status.Conditions = []metav1.Condition{{Type: clusterv1beta1.ConditionSatisfied, Status: metav1.ConditionTrue,
		Reason: clusterv1beta1.ReasonAllDecisionsScheduled}}
	return &addOnFleet{
		registered: map[string]*addonv1alpha1.ClusterManagementAddOn{"metrics": a},
		instances:  map[string][]*addonv1alpha1.ManagedClusterAddOn{"metrics": {one}},
		clusters:   map[string]*clusterv1.ManagedCluster{"c1": well()},
		placements: map[addonv1alpha1.PlacementRef]*clusterv1beta1.Placement{ref: p},
		templates:  map[string]bool{"metrics-1": true}, requests: map[addon.Pair][]*unstructured.Unstructured{},
	}
}

// instanceSays sets a condition of the instance on c1.
func instanceSays(kind string, status metav1.ConditionStatus, reason, message string) func(*addOnFleet) {
	return func(all *addOnFleet) {
		one := all.instances["metrics"][0]
		var kept []metav1.Condition
		for _, c := range one.Status.Conditions {
			if c.Type != kind {
				kept = append(kept, c)
			}
		}
		one.Status.Conditions = append(kept,
			metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: longAgo})
	}
}

func TestWhatIsWrongWithAnAddOnHasItsFinding(t *testing.T) {
	type change = func(*addOnFleet)
	both := func(all ...change) change {
		return func(f *addOnFleet) {
			for _, one := range all {
				one(f)
			}
		}
	}
	ref := addonv1alpha1.PlacementRef{Namespace: "apps", Name: "p"}
	for name, tc := range map[string]struct {
		change change
		// want is the code, the title and the cause of the finding; empty for none.
		want []string
	}{
		"all is well": {},
		"not registered": {
			func(f *addOnFleet) { delete(f.registered, "metrics") },
			[]string{CodeAddOnRegistered, "it is on 1 cluster, but it is not registered",
				"without a ClusterManagementAddOn nothing of it is deployed"},
		},
		"it installs itself": {func(f *addOnFleet) {
			f.registered["metrics"].Annotations = map[string]string{addonv1alpha1.AnnotationLifecycle: "self"}
		}, []string{CodeAddOnRegistered, "it names placements, but installs itself",
			`its annotation addon.open-cluster-management.io/lifecycle is "self", so that the hub ignores placements for it`}},
		"no placement": {func(f *addOnFleet) { delete(f.placements, ref) },
			[]string{CodeAddOnPlacement, "there is no placement apps/p", "its install strategy names it"}},
		"undecided placement": {
			func(f *addOnFleet) { f.placements[ref].Status.Conditions = nil },
			[]string{CodeAddOnPlacement, "placement apps/p is not decided yet",
				"until then the add-on is neither added to clusters nor removed from them"},
		},
		"a placement that selects no cluster": {
			func(f *addOnFleet) {
				f.placements[ref].Status.Conditions[0] = metav1.Condition{Type: clusterv1beta1.ConditionSatisfied,
					Status: metav1.ConditionFalse,
					Reason: "NoManagedClusterMatched", Message: "no cluster\nfits"}
			},
			[]string{CodeAddOnPlacement, "placement apps/p selects no cluster", "no cluster fits"},
		},
		"a rollout that has stopped": {
			func(f *addOnFleet) {
				f.registered["metrics"].Status.InstallProgressions = []addonv1alpha1.InstallProgression{{PlacementRef: ref,
					Conditions: []metav1.Condition{{Type: addonv1alpha1.ConditionProgressing,
						Message: "2 timeout." + addonv1alpha1.MessageRolloutStopped}}}}
			},
			[]string{CodeAddOnRollout, "its rollout to placement apps/p has stopped",
				"more clusters have timed out than maxFailures allows; it resumes when they recover"},
		},
		"no template": {func(f *addOnFleet) { f.templates = nil },
			[]string{CodeAddOnTemplate, `there is no AddOnTemplate "metrics-1"`, "it is the default of the add-on"}},
		"an unsupported configuration": {
			instanceSays(addonv1alpha1.ConditionProgressing, metav1.ConditionFalse, addonv1alpha1.ReasonConfigurationUnsupported,
				"gvr x/y"),
			[]string{CodeAddOnConfig, "on c1: it cannot use a configuration", "gvr x/y"},
		},
		"a missing configuration": {
			func(f *addOnFleet) {
				f.instances["metrics"][0].Status.ConfigReferences = []addonv1alpha1.ConfigReference{{
					ConfigGroupResource: addonv1alpha1.ConfigGroupResource{Resource: "configmaps"},
					DesiredConfig: &addonv1alpha1.ConfigSpecHash{ConfigReferent: addonv1alpha1.ConfigReferent{Namespace: "n",
						Name: "c"}},
				}}
			},
			[]string{CodeAddOnConfig, "on c1: its configuration configmaps n/c has no content",
				"there is none, or the add-on's controller does not read this kind"},
		},
		"no controller has handled it": {func(f *addOnFleet) { f.instances["metrics"][0].Status.Conditions = nil },
			[]string{CodeAddOnRegistration, "on c1: no controller has handled it",
				"the hub should render its templates, and has not"}},
		"no rights": {
			instanceSays(addonv1alpha1.ConditionRegistrationApplied, metav1.ConditionFalse,
				addonv1alpha1.ReasonSetPermissionFailed, "type this"),
			[]string{CodeAddOnRegistration, "on c1: its agent did not get its rights on the hub", "type this"},
		},
		"no right to make tokens": {instanceSays(addonv1alpha1.ConditionTokenInfrastructureReady, metav1.ConditionFalse,
			addonv1alpha1.ReasonTokenInfrastructureApplyFailed, "bind it"),
			[]string{CodeAddOnToken, "on c1: it cannot have a token", "bind it"}},
		"a template that does not render": {instanceSays(addonv1alpha1.ConditionManifestApplied, metav1.ConditionFalse,
			addonv1alpha1.ReasonManifestWorkApplyFailed, "manifests[0]"),
			[]string{CodeAddOnTemplate, "on c1: its template cannot be rendered", "manifests[0]"}},
		"works that cannot be made": {
			both(func(f *addOnFleet) { f.registered["metrics"].Spec.SupportedConfigs = nil },
				instanceSays(addonv1alpha1.ConditionManifestApplied, metav1.ConditionFalse,
					addonv1alpha1.ReasonManifestWorkApplyFailed, "too large")),
			[]string{CodeAddOnWorks, "on c1: its controller could not make its works", "too large"},
		},
		"manifests that are refused": {
			instanceSays(addonv1alpha1.ConditionManifestApplied, metav1.ConditionFalse,
				addonv1alpha1.ReasonManifestAppliedFailed,
				"forbidden"),
			[]string{CodeAddOnWorks, "on c1: its manifests are not applied", "forbidden"},
		},
		"a denied request": {instanceSays(addonv1alpha1.ConditionClusterCertificateRotated, metav1.ConditionFalse,
			addonv1alpha1.ReasonClientCertificateUpdateFailed, "denied"),
			[]string{CodeAddOnCredential, "on c1: its agent gets no credential", "denied"}},
		"a request that waits": {func(f *addOnFleet) {
			u := &unstructured.Unstructured{Object: map[string]any{}}
			u.SetName("addon-c1-metrics-x")
			u.SetCreationTimestamp(longAgo)
			f.requests[addon.Pair{AddOn: "metrics", Cluster: "c1"}] = []*unstructured.Unstructured{u}
		}, []string{CodeAddOnCredential, "on c1: the certificate request of its agent waits for an answer",
			"addon-c1-metrics-x waits for 60m; the add-on's controller approves it"}},
		"a late lease": {
			instanceSays(addonv1alpha1.ConditionAvailable, metav1.ConditionFalse, addonv1alpha1.ReasonLeaseUpdateStopped, ""),
			[]string{CodeAddOnHealth, "on c1: its agent has stopped renewing its lease",
				"the agent does not run on the cluster, or one of its own checks fails"},
		},
		"no lease": {
			instanceSays(addonv1alpha1.ConditionAvailable, metav1.ConditionUnknown, addonv1alpha1.ReasonLeaseNotFound, ""),
			[]string{CodeAddOnHealth, "on c1: its agent has never renewed its lease",
				"it does not run there or renews a lease in another namespace; an add-on without an agent needs another health mode"},
		},
		"a probe that fails": {
			instanceSays(addonv1alpha1.ConditionAvailable, metav1.ConditionFalse, addonv1alpha1.ReasonProbeUnavailable,
				"no replica"),
			[]string{CodeAddOnHealth, "on c1: it is not available", "no replica"},
		},
		"degraded": {instanceSays(addonv1alpha1.ConditionDegraded, metav1.ConditionTrue, "Slow", ""),
			[]string{CodeAddOnHealth, "on c1: it reports that it is degraded", "Slow"}},
		"a cluster that is away": {
			both(func(f *addOnFleet) { says(f.clusters["c1"], clusterv1.ConditionAvailable, metav1.ConditionUnknown, "") },
				instanceSays(addonv1alpha1.ConditionAvailable, metav1.ConditionUnknown, "ManagedClusterLeaseUpdateStopped", "")),
			[]string{CodeAddOnHealth, "on c1: its cluster is not available", ""},
		},
		"no cluster": {
			func(f *addOnFleet) { f.clusters = nil },
			[]string{CodeAddOnCluster, "on c1: there is no such managed cluster",
				"an add-on lives in the namespace of its cluster"},
		},
		"no hosting cluster": {
			instanceSays(addonv1alpha1.ConditionHostingClusterValidity, metav1.ConditionFalse,
				addonv1alpha1.ReasonHostingClusterInvalid,
				"h is none"),
			[]string{CodeAddOnCluster, "on c1: the cluster that is to host it cannot", "h is none"},
		},
		"a hook that does not end": {
			both(instanceSays(addonv1alpha1.ConditionHookManifestCompleted, metav1.ConditionFalse,
				addonv1alpha1.ReasonHookNotCompleted,
				"job x fails"), func(f *addOnFleet) {
				f.instances["metrics"][0].DeletionTimestamp = &longAgo
			}),
			[]string{CodeAddOnLeaves, "on c1: it is being deleted for 60m", "its hook has not completed: job x fails"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			all := wellAddOn()
			if tc.change != nil {
				tc.change(all)
			}
			found := checkingAt().addOn(all, "metrics")
			if tc.want == nil {
				require.Empty(t, found)
				return
			}
			require.Len(t, found, 1)
			require.Equal(t, tc.want, []string{found[0].Code, found[0].Title, found[0].Cause})
			require.NotEmpty(t, found[0].Fix)
			require.NotEqual(t, SeverityOK, found[0].Severity)
		})
	}
}

// The right to create tokens reaches every account: it is proposed when it is what is missing,
// and not when something else kept the hub from creating them.
func TestTheRightToMakeTokensIsProposedWhereItLacks(t *testing.T) {
	for why, binds := range map[string]bool{"serviceaccounts is forbidden": true, "the object has been modified": false} {
		all := wellAddOn()
		instanceSays(addonv1alpha1.ConditionTokenInfrastructureReady, metav1.ConditionFalse,
			addonv1alpha1.ReasonTokenInfrastructureApplyFailed,
			"grant them with \""+confighub.AllowTokenDriver+"\": "+why)(all)
		found := checkingAt().addOn(all, "metrics")
		require.Len(t, found, 1)
		require.Equal(t, binds, found[0].Fix.(fleet.Remedy).Code == AllowTokens, "%s: %s", why, found[0].Fix)
	}
}

// What has just begun is not a finding, nor is what another controller decides.
func TestAnAddOnHasTime(t *testing.T) {
	frozen := wellAddOn()
	for _, p := range frozen.placements {
		p.Annotations, p.Status.Conditions = map[string]string{clusterv1beta1.AnnotationSchedulingDisable: "true"}, nil
	}
	require.Empty(t, checkingAt().addOn(frozen, "metrics"))
	all := wellAddOn()
	one, now := all.instances["metrics"][0], metav1.NewTime(checkedAt.Add(-time.Second))
	one.CreationTimestamp, one.Status.Conditions = now, nil
	require.Empty(t, checkingAt().addOn(all, "metrics"))
	one.Status.Conditions = []metav1.Condition{{Type: addonv1alpha1.ConditionAvailable, Status: metav1.ConditionUnknown,
		Reason: addonv1alpha1.ReasonLeaseNotFound, LastTransitionTime: now}}
	require.Empty(t, checkingAt().addOn(all, "metrics"))
	one.DeletionTimestamp = &now
	require.Empty(t, checkingAt().addOn(all, "metrics"))
}

// A broken add-on must not produce a thousand lines.
func TestClustersOfAnAddOnAreBounded(t *testing.T) {
	all := wellAddOn()
	all.clusters = nil
	for range maxOnClusters + 4 {
		all.instances["metrics"] = append(all.instances["metrics"], all.instances["metrics"][0])
	}
	found := checkingAt().addOn(all, "metrics")
	require.Len(t, found, maxOnClusters+1)
	require.Equal(t, "it is unhealthy on 5 more clusters", found[maxOnClusters].Title)
}
