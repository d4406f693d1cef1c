// SPDX-License-Identifier: Apache-2.0

package permission

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/permission/grant"
	permissionv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/rbac/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// setCondition sets a condition for the current generation.
func (s State) setCondition(cp *permissionv1alpha1.ClusterPermission, kind string, status metav1.ConditionStatus, reason, message string) {
	reconcile.SetCondition(&cp.Status.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: message, ObservedGeneration: cp.Generation,
	}, s.Now)
}

// reported is what is known of the work: its conditions only if they are about the current spec.
type reported struct {
	Work
	// name of the work, also when there is none yet.
	name string
	// waiting is why it is not written now; empty if it is, or is as it should be.
	waiting string
}

// report sets the status of a ClusterPermission whose objects are sent.
func report(s State, cp *permissionv1alpha1.ClusterPermission, manifests []grant.Manifest, r reported) {
	status, reason := metav1.ConditionFalse, permissionv1alpha1.ReasonApplyPending
	message := "The agent of cluster " + cp.Namespace + " has not reported about the current ManifestWork yet"
	switch {
	case r.waiting != "":
		message = "Waiting: " + r.waiting
	case r.Applied != nil:
		status, reason, message = r.Applied.Status, r.Applied.Reason, r.Applied.Message
	}
	s.setCondition(cp, permissionv1alpha1.ConditionApplied, status, reason,
		fmt.Sprintf("%s\nTo see the ManifestWork: kubectl get manifestworks -n %s %s -o yaml", message, cp.Namespace, r.name))
	for _, v := range []struct{ kind, condition, all, missing string }{
		{"Role", permissionv1alpha1.ConditionValidateRolesExist, permissionv1alpha1.ReasonAllRolesFound, permissionv1alpha1.ReasonRolesNotFound},
		{
			"ClusterRole", permissionv1alpha1.ConditionValidateClusterRolesExist,
			permissionv1alpha1.ReasonAllClusterRolesFound, permissionv1alpha1.ReasonClusterRolesNotFound,
		},
	} {
		switch missing, known := missingOf(manifests, v.kind, r); {
		case cp.Spec.Validate == nil || !*cp.Spec.Validate:
			apimeta.RemoveStatusCondition(&cp.Status.Conditions, v.condition)
		case !known: // what was said before is about other roles
			apimeta.RemoveStatusCondition(&cp.Status.Conditions, v.condition)
		case len(missing) > 0:
			s.setCondition(cp, v.condition, metav1.ConditionFalse, v.missing,
				"Not found on cluster "+cp.Namespace+": "+strings.Join(missing, ", ")+"; create them there, or change the roleRef")
		default:
			s.setCondition(cp, v.condition, metav1.ConditionTrue, v.all, "Bindings refer to no missing "+v.kind)
		}
	}
	setResources(s, cp, manifests, r)
}

// missingOf returns the referred roles of a kind that the cluster does not have; known is false
// until the agent has reported about each.
func missingOf(manifests []grant.Manifest, kind string, r reported) (missing []string, known bool) {
	for _, m := range manifests {
		if !m.Reference || m.Kind != kind {
			continue
		}
		switch c := r.Objects[ref{m.Kind, m.Namespace, m.Name}].Available; {
		case c == nil:
			return nil, false
		case c.Status != metav1.ConditionTrue:
			missing = append(missing, strings.TrimPrefix(m.Namespace+"/"+m.Name, "/"))
		}
	}
	return missing, r.Applied != nil
}

// setResources reports every object that is sent.
func setResources(s State, cp *permissionv1alpha1.ClusterPermission, manifests []grant.Manifest, r reported) {
	before := conditionsBefore(cp.Status.ResourceStatus)
	after := &permissionv1alpha1.ResourceStatus{}
	for _, m := range manifests {
		if m.Reference {
			continue
		}
		id := ref{m.Kind, m.Namespace, m.Name}
		c := conditionOf(r.Objects[id].Applied)
		c.ObservedGeneration = cp.Generation
		conditions := before[id]
		reconcile.SetCondition(&conditions, c, s.Now)
		switch m.Kind {
		case "ClusterRole":
			after.ClusterRoles = append(after.ClusterRoles, permissionv1alpha1.ClusterResource{Name: m.Name, Conditions: conditions})
		case "ClusterRoleBinding":
			after.ClusterRoleBindings = append(after.ClusterRoleBindings, permissionv1alpha1.ClusterResource{Name: m.Name, Conditions: conditions})
		case "Role":
			after.Roles = append(after.Roles, permissionv1alpha1.NamespacedResource{Namespace: m.Namespace, Name: m.Name, Conditions: conditions})
		default:
			after.RoleBindings = append(after.RoleBindings, permissionv1alpha1.NamespacedResource{Namespace: m.Namespace, Name: m.Name, Conditions: conditions})
		}
	}
	cp.Status.ResourceStatus = after
}

// conditionsBefore returns the conditions of each object in a status.
func conditionsBefore(status *permissionv1alpha1.ResourceStatus) map[ref][]metav1.Condition {
	out := map[ref][]metav1.Condition{}
	if status == nil {
		return out
	}
	for kind, list := range map[string][]permissionv1alpha1.ClusterResource{"ClusterRole": status.ClusterRoles, "ClusterRoleBinding": status.ClusterRoleBindings} {
		for _, o := range list {
			out[ref{kind, "", o.Name}] = o.Conditions
		}
	}
	for kind, list := range map[string][]permissionv1alpha1.NamespacedResource{"Role": status.Roles, "RoleBinding": status.RoleBindings} {
		for _, o := range list {
			out[ref{kind, o.Namespace, o.Name}] = o.Conditions
		}
	}
	return out
}

// conditionOf returns what is reported about an object of the work with this condition Applied;
// nil when the agent has said nothing.
func conditionOf(applied *metav1.Condition) metav1.Condition {
	c := metav1.Condition{Type: permissionv1alpha1.ConditionResourceApplied, Status: metav1.ConditionFalse}
	switch {
	case applied == nil:
		c.Reason, c.Message = permissionv1alpha1.ReasonManifestUnknown, "The agent has not reported about it yet"
	case applied.Status == metav1.ConditionTrue:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, permissionv1alpha1.ReasonManifestApplied, applied.Message
	default:
		c.Reason, c.Message = permissionv1alpha1.ReasonManifestFailed, applied.Message
	}
	return c
}

// events tells of conditions that became False for a reason that a person must remove, and of
// rights that became effective.
func events(before, after *permissionv1alpha1.ClusterPermission) (out []reconcile.Event) {
	for _, kind := range []string{permissionv1alpha1.ConditionValidation, permissionv1alpha1.ConditionApplied} {
		is := apimeta.FindStatusCondition(after.Status.Conditions, kind)
		was := apimeta.FindStatusCondition(before.Status.Conditions, kind)
		if is == nil || was != nil && was.Status == is.Status && was.Reason == is.Reason {
			continue
		}
		switch {
		case is.Status == metav1.ConditionTrue && kind == permissionv1alpha1.ConditionApplied:
			out = append(out, reconcile.Event{Type: corev1.EventTypeNormal, Reason: is.Reason, Message: is.Message, After: reconcile.Status})
		case is.Status != metav1.ConditionTrue && is.Reason != permissionv1alpha1.ReasonApplyPending:
			out = append(out, reconcile.Event{Type: corev1.EventTypeWarning, Reason: is.Reason, Message: is.Message, After: reconcile.Status})
		}
	}
	return out
}
