// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"slices"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/duration"

	confighub "github.com/kubectl-ocm/kubectl-ocm/config/hub"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

// instance is the first thing that is wrong with an add-on on a cluster, in the order
// in which it gets there; a is its registration, nil where there is none.
func (c *checking) instance(all *addOnFleet, a *addonv1alpha1.ClusterManagementAddOn, one *addonv1alpha1.ManagedClusterAddOn) *Finding {
	for _, look := range []func(*addOnFleet, *addonv1alpha1.ClusterManagementAddOn, *addonv1alpha1.ManagedClusterAddOn) *Finding{
		c.instanceGoes, c.instancePlace, c.instanceConfigs, c.instanceRegistration, c.instanceWorks, c.instanceCredential, c.instanceHealth,
	} {
		if f := look(all, a, one); f != nil {
			return f
		}
	}
	return nil
}

// instanceError is what is wrong with an add-on on a cluster.
func instanceError(code, title, cause, fix string) *Finding {
	return &Finding{Code: code, Severity: SeverityError, Title: title, Cause: cause, Fix: fix}
}

// statusLine shows all that is known of an add-on on a cluster.
func (c *checking) statusLine(one *addonv1alpha1.ManagedClusterAddOn) string {
	return "kubectl ocm addon status " + one.Name + " -c " + one.Namespace + c.o.Hub.flag()
}

// instanceGoes: it is being deleted, and something holds it.
func (c *checking) instanceGoes(_ *addOnFleet, _ *addonv1alpha1.ClusterManagementAddOn, one *addonv1alpha1.ManagedClusterAddOn) *Finding {
	if one.DeletionTimestamp == nil || c.run.now().Sub(one.DeletionTimestamp.Time) < patient {
		return nil
	}
	hub := c.o.Hub.flag()
	f := instanceError(codeAddOnLeaves, "it is being deleted for "+duration.HumanDuration(c.run.now().Sub(one.DeletionTimestamp.Time)),
		"held by "+orElse(strings.Join(one.Finalizers, ", "), "nothing"), "kubectl ocm work list -c "+one.Namespace+hub)
	hook := apimeta.FindStatusCondition(one.Status.Conditions, addonv1alpha1.ConditionHookManifestCompleted)
	if hook != nil && hook.Status != metav1.ConditionTrue {
		f.Cause = "its hook has not run to its end: " + because(one, hook.Type)
		f.Fix += fmt.Sprintf("      shows the work of the hook; kubectl annotate managedclusteraddon %s -n %s %s=1m%s gives it up",
			one.Name, one.Namespace, addonv1alpha1.AnnotationHookDeadline, hub)
	}
	return f
}

// instancePlace: the cluster, or the one that hosts the add-on, is not there.
func (c *checking) instancePlace(all *addOnFleet, _ *addonv1alpha1.ClusterManagementAddOn, one *addonv1alpha1.ManagedClusterAddOn) *Finding {
	hub := c.o.Hub.flag()
	switch {
	case all.clusters[one.Namespace] == nil:
		return instanceError(codeAddOnCluster, "there is no such managed cluster", "an add-on lives in the namespace of its cluster",
			"kubectl delete managedclusteraddon "+one.Name+" -n "+one.Namespace+hub)
	case apimeta.IsStatusConditionFalse(one.Status.Conditions, addonv1alpha1.ConditionHostingClusterValidity):
		return instanceError(codeAddOnCluster, "the cluster that is to host it cannot", because(one, addonv1alpha1.ConditionHostingClusterValidity),
			"kubectl ocm cluster list"+hub+"      and correct the annotation "+addonv1alpha1.AnnotationHostingClusterName)
	}
	return nil
}

// instanceConfigs: a configuration is not supported, or not there.
func (c *checking) instanceConfigs(_ *addOnFleet, a *addonv1alpha1.ClusterManagementAddOn, one *addonv1alpha1.ManagedClusterAddOn) *Finding {
	if a == nil || !managedByHub(a) {
		return nil
	}
	hub := c.o.Hub.flag()
	progressing := apimeta.FindStatusCondition(one.Status.Conditions, addonv1alpha1.ConditionProgressing)
	if progressing != nil && progressing.Reason == addonv1alpha1.ReasonConfigurationUnsupported {
		return instanceError(codeAddOnConfig, "it cannot use a configuration", oneLine(progressing.Message),
			fmt.Sprintf("kubectl edit managedclusteraddon %s -n %s%s      and take it out of spec.configs", one.Name, one.Namespace, hub))
	}
	for _, r := range one.Status.ConfigReferences {
		if d := r.DesiredConfig; d != nil && d.SpecHash == "" {
			kind := strings.TrimSuffix(r.Resource+"."+r.Group, ".")
			f := instanceError(codeAddOnConfig, "its configuration "+r.Resource+" "+strings.TrimPrefix(d.Namespace+"/"+d.Name, "/")+" has no content",
				"there is none, or the add-on's controller does not read this kind", "kubectl get "+kind+" "+d.Name+hub)
			if d.Namespace != "" {
				f.Fix = "kubectl get " + kind + " " + d.Name + " -n " + d.Namespace + hub
			}
			return f
		}
	}
	return nil
}

// instanceRegistration: nobody has looked at it, or its agent has no rights.
func (c *checking) instanceRegistration(_ *addOnFleet, a *addonv1alpha1.ClusterManagementAddOn, one *addonv1alpha1.ManagedClusterAddOn) *Finding {
	hub := c.o.Hub.flag()
	registered := apimeta.FindStatusCondition(one.Status.Conditions, addonv1alpha1.ConditionRegistrationApplied)
	switch {
	case registered == nil && len(one.Status.Conditions) == 0 && a != nil && c.run.now().Sub(one.CreationTimestamp.Time) >= patient:
		f := instanceError(codeAddOnRegistration, "nobody has taken it up", "the add-on's own controller does not run on the hub, or may not read it",
			"kubectl get pods -A"+hub+"      shows whether the add-on's controller runs")
		if templated(a) {
			f.Cause, f.Fix = "the hub renders its templates, and has not", "kubectl ocm check hub"+hub
		}
		return f
	case registered != nil && registered.Status == metav1.ConditionFalse && registered.Reason != addonv1alpha1.ReasonPermissionConfigPending:
		return instanceError(codeAddOnRegistration, "its agent did not get its rights on the hub", because(one, registered.Type),
			c.statusLine(one)+"      names the commands to type, as somebody who has these rights")
	case apimeta.IsStatusConditionFalse(one.Status.Conditions, addonv1alpha1.ConditionTokenInfrastructureReady):
		f := instanceError(codeAddOnToken, "it cannot have a token", because(one, addonv1alpha1.ConditionTokenInfrastructureReady), c.statusLine(one))
		// It reaches every account: where something else is wrong, nobody needs that right.
		if strings.Contains(f.Cause, confighub.AllowTokenDriver) && strings.Contains(f.Cause, "forbidden") {
			f.Fix = confighub.AllowTokenDriver + hub
		}
		return f
	}
	return nil
}

// instanceWorks: it does not render, or the cluster refused an object.
func (c *checking) instanceWorks(_ *addOnFleet, a *addonv1alpha1.ClusterManagementAddOn, one *addonv1alpha1.ManagedClusterAddOn) *Finding {
	hub := c.o.Hub.flag()
	for _, kind := range []string{addonv1alpha1.ConditionManifestApplied, addonv1alpha1.ConditionHostingManifestApplied} {
		found := apimeta.FindStatusCondition(one.Status.Conditions, kind)
		switch {
		case found == nil || found.Status != metav1.ConditionFalse:
		case found.Reason == addonv1alpha1.ReasonManifestWorkApplyFailed && templated(a):
			return instanceError(codeAddOnTemplate, "its template cannot be rendered", because(one, kind),
				"kubectl ocm addon create "+one.Name+" -f FOLDER --render "+one.Namespace+hub+"      tries a correction")
		case found.Reason == addonv1alpha1.ReasonManifestWorkApplyFailed:
			return instanceError(codeAddOnWorks, "its controller could not make its works", because(one, kind),
				"kubectl get pods -A"+hub+"      shows the add-on's controller; its log says more")
		default:
			return instanceError(codeAddOnWorks, "its manifests are not applied", because(one, kind), "kubectl ocm work list -c "+one.Namespace+hub)
		}
	}
	return nil
}

// instanceCredential: its agent waits for a certificate or a token.
func (c *checking) instanceCredential(all *addOnFleet, _ *addonv1alpha1.ClusterManagementAddOn, one *addonv1alpha1.ManagedClusterAddOn) *Finding {
	for _, kind := range []string{addonv1alpha1.ConditionClusterCertificateRotated, addonv1alpha1.ConditionTokenRefreshed} {
		if apimeta.IsStatusConditionFalse(one.Status.Conditions, kind) {
			return instanceError(codeAddOnCredential, "its agent gets no credential", because(one, kind),
				"kubectl get csr -l "+addonv1alpha1.LabelAddOnName+"="+one.Name+c.o.Hub.flag())
		}
	}
	waiting := func(u *unstructured.Unstructured) bool {
		certificate, _, _ := unstructured.NestedString(u.Object, "status", "certificate")
		return certificate == "" && len(conditionsOf(u)) == 0 && c.run.now().Sub(u.GetCreationTimestamp().Time) >= patient
	}
	requests := all.requests[pair{one.Name, one.Namespace}]
	if i := slices.IndexFunc(requests, waiting); i >= 0 {
		name, age := requests[i].GetName(), c.run.now().Sub(requests[i].GetCreationTimestamp().Time)
		return instanceError(codeAddOnCredential, "nobody has answered the certificate request of its agent",
			name+" waits for "+duration.HumanDuration(age)+"; the add-on's controller approves it",
			"kubectl get csr "+name+" -o yaml"+c.o.Hub.flag()+"      and, if it is right, kubectl certificate approve "+name+c.o.Hub.flag())
	}
	return nil
}

// instanceHealth: it does not work, or its agent is silent. Of a cluster that is away
// the check of the cluster tells.
func (c *checking) instanceHealth(all *addOnFleet, _ *addonv1alpha1.ClusterManagementAddOn, one *addonv1alpha1.ManagedClusterAddOn) *Finding {
	hub := c.o.Hub.flag()
	f := instanceError(codeAddOnHealth, "", "", c.statusLine(one))
	onCluster := "kubectl get pods,leases -n " + orElse(one.Status.Namespace, addonv1alpha1.DefaultInstallNamespace) +
		" --context " + c.onCluster(all, one.Namespace)
	available := apimeta.FindStatusCondition(one.Status.Conditions, addonv1alpha1.ConditionAvailable)
	late := available != nil && c.run.now().Sub(available.LastTransitionTime.Time) >= patient
	switch {
	case apimeta.IsStatusConditionTrue(one.Status.Conditions, addonv1alpha1.ConditionDegraded):
		f.Severity, f.Title, f.Cause = SeverityWarning, "it says that it is degraded", because(one, addonv1alpha1.ConditionDegraded)
	case available == nil || available.Status == metav1.ConditionTrue:
		return nil
	case !apimeta.IsStatusConditionTrue(all.clusters[one.Namespace].Status.Conditions, clusterv1.ConditionAvailable):
		f.Severity, f.Title, f.Fix = SeverityWarning, "its cluster is not available", "kubectl ocm check cluster "+one.Namespace+hub
	case available.Reason == addonv1alpha1.ReasonLeaseUpdateStopped:
		f.Title, f.Cause = "its agent has stopped to renew its lease", "the agent does not run on the cluster, or one of its own checks fails"
		f.Fix = onCluster
	case available.Reason == addonv1alpha1.ReasonLeaseNotFound && late:
		f.Title, f.Fix = "its agent has never renewed its lease", onCluster
		f.Cause = "it does not run there, renews one in another namespace, or has no agent and another kind of health is meant"
	case available.Status == metav1.ConditionFalse || late:
		f.Title, f.Cause = "it is not available", because(one, available.Type)
	default:
		return nil
	}
	return f
}

// onCluster is the context of the cluster of an add-on.
func (c *checking) onCluster(all *addOnFleet, cluster string) string {
	if mc := all.clusters[cluster]; mc != nil {
		if name := c.contextOf(mc); name != "" {
			return ShellWord(name)
		}
	}
	return "<context of " + cluster + ">"
}
