// SPDX-License-Identifier: Apache-2.0

package check

import (
	"slices"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/duration"

	confighub "github.com/kubectl-ocm/kubectl-ocm/config/hub"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/addon"
)

// instance returns the first thing that is wrong with an add-on on a cluster, in the order of
// its steps, or a zero finding; a is its registration, nil when there is none.
func (c *checking) instance(all *addOnFleet, a *addonv1alpha1.ClusterManagementAddOn, one *addonv1alpha1.ManagedClusterAddOn) Finding {
	for _, look := range []func(*addOnFleet, *addonv1alpha1.ClusterManagementAddOn, *addonv1alpha1.ManagedClusterAddOn) Finding{
		c.instanceGoes, c.instancePlace, c.instanceConfigs, c.instanceRegistration, c.instanceWorks, c.instanceCredential, c.instanceHealth,
	} {
		if f := look(all, a, one); f.Code != "" {
			return f
		}
	}
	return Finding{}
}

// instanceGoes: it is being deleted, and something holds it up.
func (c *checking) instanceGoes(_ *addOnFleet, _ *addonv1alpha1.ClusterManagementAddOn, one *addonv1alpha1.ManagedClusterAddOn) Finding {
	if one.DeletionTimestamp == nil || c.run.Now().Sub(one.DeletionTimestamp.Time) < stepPatience {
		return Finding{}
	}
	f := failure(CodeAddOnLeaves, "it is being deleted for "+duration.HumanDuration(c.run.Now().Sub(one.DeletionTimestamp.Time)),
		"held by "+fleet.OrElse(strings.Join(one.Finalizers, ", "), "nothing"), fleet.ShowWorks.On(c.o.Hub, "work", "", "cluster", one.Namespace))
	hook := apimeta.FindStatusCondition(one.Status.Conditions, addonv1alpha1.ConditionHookManifestCompleted)
	if hook != nil && hook.Status != metav1.ConditionTrue {
		f.Cause = "its hook has not completed: " + conditionCause(one, hook.Type)
		f.Fix = GiveUpHook.On(c.o.Hub, "addon", one.Name, "cluster", one.Namespace, "annotation", addonv1alpha1.AnnotationHookDeadline)
	}
	return f
}

// instancePlace: the cluster, or the cluster that hosts the add-on, does not exist.
func (c *checking) instancePlace(all *addOnFleet, _ *addonv1alpha1.ClusterManagementAddOn, one *addonv1alpha1.ManagedClusterAddOn) Finding {
	switch {
	case all.clusters[one.Namespace] == nil:
		return failure(CodeAddOnCluster, "there is no such managed cluster", "an add-on lives in the namespace of its cluster",
			DeleteInstance.On(c.o.Hub, "addon", one.Name, "cluster", one.Namespace))
	case apimeta.IsStatusConditionFalse(one.Status.Conditions, addonv1alpha1.ConditionHostingClusterValidity):
		return failure(CodeAddOnCluster, "the cluster that is to host it cannot", conditionCause(one, addonv1alpha1.ConditionHostingClusterValidity),
			CorrectHost.On(c.o.Hub, "annotation", addonv1alpha1.AnnotationHostingClusterName))
	}
	return Finding{}
}

// instanceConfigs: a configuration is not supported or does not exist.
func (c *checking) instanceConfigs(_ *addOnFleet, a *addonv1alpha1.ClusterManagementAddOn, one *addonv1alpha1.ManagedClusterAddOn) Finding {
	if a == nil || !addon.ManagedByHub(a) {
		return Finding{}
	}
	progressing := apimeta.FindStatusCondition(one.Status.Conditions, addonv1alpha1.ConditionProgressing)
	if progressing != nil && progressing.Reason == addonv1alpha1.ReasonConfigurationUnsupported {
		return failure(CodeAddOnConfig, "it cannot use a configuration", fleet.OneLine(progressing.Message),
			addon.DropConfig.On(c.o.Hub, "addon", one.Name, "cluster", one.Namespace))
	}
	for _, r := range one.Status.ConfigReferences {
		if d := r.DesiredConfig; d != nil && d.SpecHash == "" {
			kind := strings.TrimSuffix(r.Resource+"."+r.Group, ".")
			return failure(CodeAddOnConfig, "its configuration "+r.Resource+" "+strings.TrimPrefix(d.Namespace+"/"+d.Name, "/")+" has no content",
				"there is none, or the add-on's controller does not read this kind",
				fleet.ShowObject.On(c.o.Hub, "resource", kind, "name", d.Name, "namespace", d.Namespace))
		}
	}
	return Finding{}
}

// instanceRegistration: no controller has handled it, or its agent has no rights.
func (c *checking) instanceRegistration(_ *addOnFleet, a *addonv1alpha1.ClusterManagementAddOn, one *addonv1alpha1.ManagedClusterAddOn) Finding {
	registered := apimeta.FindStatusCondition(one.Status.Conditions, addonv1alpha1.ConditionRegistrationApplied)
	switch {
	case registered == nil && len(one.Status.Conditions) == 0 && a != nil && c.run.Now().Sub(one.CreationTimestamp.Time) >= stepPatience:
		f := failure(CodeAddOnRegistration, "no controller has handled it", "the add-on's own controller does not run on the hub, or may not read it",
			FindController.On(c.o.Hub))
		if isTemplated(a) {
			f.Cause, f.Fix = "the hub should render its templates, and has not", fleet.CheckHub.On(c.o.Hub)
		}
		return f
	case registered != nil && registered.Status == metav1.ConditionFalse && registered.Reason != addonv1alpha1.ReasonPermissionConfigPending:
		return failure(CodeAddOnRegistration, "its agent did not get its rights on the hub", conditionCause(one, registered.Type),
			ShowMissingRights.On(c.o.Hub, "addon", one.Name, "cluster", one.Namespace))
	case apimeta.IsStatusConditionFalse(one.Status.Conditions, addonv1alpha1.ConditionTokenInfrastructureReady):
		f := failure(CodeAddOnToken, "it cannot have a token", conditionCause(one, addonv1alpha1.ConditionTokenInfrastructureReady),
			fleet.ShowAddOn.On(c.o.Hub, "addon", one.Name, "cluster", one.Namespace))
		// This right reaches every account: it is proposed only when nothing else is wrong.
		if strings.Contains(f.Cause, confighub.AllowTokenDriver) && strings.Contains(f.Cause, "forbidden") {
			f.Fix = AllowTokens.On(c.o.Hub)
		}
		return f
	}
	return Finding{}
}

// instanceWorks: it does not render, or the cluster refused an object.
func (c *checking) instanceWorks(_ *addOnFleet, a *addonv1alpha1.ClusterManagementAddOn, one *addonv1alpha1.ManagedClusterAddOn) Finding {
	for _, kind := range []string{addonv1alpha1.ConditionManifestApplied, addonv1alpha1.ConditionHostingManifestApplied} {
		found := apimeta.FindStatusCondition(one.Status.Conditions, kind)
		switch {
		case found == nil || found.Status != metav1.ConditionFalse:
		case found.Reason == addonv1alpha1.ReasonManifestWorkApplyFailed && isTemplated(a):
			return failure(CodeAddOnTemplate, "its template cannot be rendered", conditionCause(one, kind),
				TryTemplate.On(c.o.Hub, "addon", one.Name, "cluster", one.Namespace))
		case found.Reason == addonv1alpha1.ReasonManifestWorkApplyFailed:
			return failure(CodeAddOnWorks, "its controller could not make its works", conditionCause(one, kind), ReadController.On(c.o.Hub))
		default:
			return failure(CodeAddOnWorks, "its manifests are not applied", conditionCause(one, kind),
				fleet.ShowWorks.On(c.o.Hub, "work", "", "cluster", one.Namespace))
		}
	}
	return Finding{}
}

// instanceCredential: its agent waits for a certificate or a token.
func (c *checking) instanceCredential(all *addOnFleet, _ *addonv1alpha1.ClusterManagementAddOn, one *addonv1alpha1.ManagedClusterAddOn) Finding {
	for _, kind := range []string{addonv1alpha1.ConditionClusterCertificateRotated, addonv1alpha1.ConditionTokenRefreshed} {
		if apimeta.IsStatusConditionFalse(one.Status.Conditions, kind) {
			return failure(CodeAddOnCredential, "its agent gets no credential", conditionCause(one, kind),
				ListRequests.On(c.o.Hub, "label", addonv1alpha1.LabelAddOnName+"="+one.Name))
		}
	}
	waiting := func(u *unstructured.Unstructured) bool {
		certificate, _, _ := unstructured.NestedString(u.Object, "status", "certificate")
		return certificate == "" && len(fleet.ConditionsOf(u)) == 0 && c.run.Now().Sub(u.GetCreationTimestamp().Time) >= stepPatience
	}
	requests := all.requests[addon.Pair{AddOn: one.Name, Cluster: one.Namespace}]
	if i := slices.IndexFunc(requests, waiting); i >= 0 {
		name, age := requests[i].GetName(), c.run.Now().Sub(requests[i].GetCreationTimestamp().Time)
		return failure(CodeAddOnCredential, "the certificate request of its agent waits for an answer",
			name+" waits for "+duration.HumanDuration(age)+"; the add-on's controller approves it",
			ApproveRequest.On(c.o.Hub, "request", name))
	}
	return Finding{}
}

// instanceHealth: it does not work, or its agent is silent. A cluster that is away is reported
// by the check of the cluster.
func (c *checking) instanceHealth(all *addOnFleet, _ *addonv1alpha1.ClusterManagementAddOn, one *addonv1alpha1.ManagedClusterAddOn) Finding {
	f := failure(CodeAddOnHealth, "", "", fleet.ShowAddOn.On(c.o.Hub, "addon", one.Name, "cluster", one.Namespace))
	onCluster := ShowAgent.With("namespace", fleet.OrElse(one.Status.Namespace, addonv1alpha1.DefaultInstallNamespace), "cluster", one.Namespace,
		"context", c.contextOf(all.clusters[one.Namespace]))
	available := apimeta.FindStatusCondition(one.Status.Conditions, addonv1alpha1.ConditionAvailable)
	late := available != nil && c.run.Now().Sub(available.LastTransitionTime.Time) >= stepPatience
	switch {
	case apimeta.IsStatusConditionTrue(one.Status.Conditions, addonv1alpha1.ConditionDegraded):
		f.Severity, f.Title, f.Cause = SeverityWarning, "it reports that it is degraded", conditionCause(one, addonv1alpha1.ConditionDegraded)
	case available == nil || available.Status == metav1.ConditionTrue:
		return Finding{}
	case !apimeta.IsStatusConditionTrue(all.clusters[one.Namespace].Status.Conditions, clusterv1.ConditionAvailable):
		f.Severity, f.Title, f.Fix = SeverityWarning, "its cluster is not available", CheckCluster.On(c.o.Hub, "cluster", one.Namespace)
	case available.Reason == addonv1alpha1.ReasonLeaseUpdateStopped:
		f.Title, f.Cause = "its agent has stopped renewing its lease", "the agent does not run on the cluster, or one of its own checks fails"
		f.Fix = onCluster
	case available.Reason == addonv1alpha1.ReasonLeaseNotFound && late:
		f.Title, f.Fix = "its agent has never renewed its lease", onCluster
		f.Cause = "it does not run there or renews a lease in another namespace; an add-on without an agent needs another health mode"
	case available.Status == metav1.ConditionFalse || late:
		f.Title, f.Cause = "it is not available", conditionCause(one, available.Type)
	default:
		return Finding{}
	}
	return f
}
