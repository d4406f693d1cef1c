// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	multiclusterv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/multicluster/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// State holds everything a decision needs.
type State struct {
	// Key identifies the profile; its name is that of the cluster.
	Key reconcile.Key
	// Cluster is nil when no ManagedCluster has the name. Decide does not change it.
	Cluster *clusterv1.ManagedCluster
	// Profile is nil when there is none.
	Profile *multiclusterv1alpha1.ClusterProfile
	// Reached is true when the namespace is bound to a set with the cluster.
	Reached bool
	// Open is true when objects can be created in the namespace: it exists and is not being
	// deleted.
	Open bool
	// Told is true when this process has already reported the profile that is in the way.
	Told bool
}

// reasonTaken is the reason of the Event on another manager's profile that has the name of a
// cluster to be shown.
const reasonTaken = "ClusterProfileNameTaken"

// isWanted reports whether the cluster is to be shown in the namespace.
func (s State) isWanted() bool {
	return s.Reached && s.Cluster != nil && s.Cluster.DeletionTimestamp == nil
}

// isNameTaken reports whether another manager's profile keeps a cluster from being shown.
func (s State) isNameTaken() bool {
	return s.isWanted() && s.Profile != nil && s.Profile.DeletionTimestamp == nil && !isOurs(s.Profile)
}

// Decide is pure.
func Decide(s State) reconcile.Plan {
	switch {
	case s.Profile == nil && s.isWanted() && s.Open:
		return reconcile.Plan{Writes: []reconcile.Write{reconcile.Create{Object: newProfile(s), Lenient: true}}}
	case s.isNameTaken() && !s.Told:
		return reconcile.Plan{Events: []reconcile.Event{{Type: corev1.EventTypeWarning, Reason: reasonTaken, Message: fmt.Sprintf(
			"ClusterProfile %s belongs to manager %q; cluster %s is not shown in namespace %s until that profile is removed or renamed",
			s.Key, s.Profile.Spec.ClusterManager.Name, s.Key.Name, s.Key.Namespace)}}}
	case s.Profile == nil || s.Profile.DeletionTimestamp != nil || !isOurs(s.Profile):
		return reconcile.Plan{}
	case !s.isWanted():
		return reconcile.Plan{Writes: []reconcile.Write{reconcile.Remove{Target: reconcile.Target{
			Resource: resource, Namespace: s.Key.Namespace, Name: s.Key.Name, UID: s.Profile.UID,
		}}}}
	}
	profile := s.Profile.DeepCopy()
	setMeta(profile, s.Cluster)
	setStatus(profile, s.Cluster)
	return reconcile.Plan{Object: profile}
}

// isOurs reports whether a profile is this project's: spec.clusterManager.name is immutable,
// and a label that was removed is restored.
func isOurs(p *multiclusterv1alpha1.ClusterProfile) bool {
	manager, labelled := p.Labels[multiclusterv1alpha1.LabelClusterManager]
	return p.Spec.ClusterManager.Name == multiclusterv1alpha1.ManagerName && (!labelled || manager == multiclusterv1alpha1.ManagerName)
}

// newProfile returns a profile to create; its status is written once it exists.
func newProfile(s State) *multiclusterv1alpha1.ClusterProfile {
	p := emptyProfile(s.Key)
	p.Spec.ClusterManager.Name = multiclusterv1alpha1.ManagerName
	setMeta(p, s.Cluster)
	return p
}

func emptyProfile(key reconcile.Key) *multiclusterv1alpha1.ClusterProfile {
	return &multiclusterv1alpha1.ClusterProfile{
		TypeMeta:   metav1.TypeMeta{APIVersion: multiclusterv1alpha1.GroupVersion.String(), Kind: "ClusterProfile"},
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
	}
}

// setMeta sets the labels and the display name.
func setMeta(p *multiclusterv1alpha1.ClusterProfile, mc *clusterv1.ManagedCluster) {
	p.Spec.DisplayName = mc.Name
	metav1.SetMetaDataLabel(&p.ObjectMeta, multiclusterv1alpha1.LabelClusterManager, multiclusterv1alpha1.ManagerName)
	metav1.SetMetaDataLabel(&p.ObjectMeta, clusterv1.LabelClusterName, mc.Name)
	if set := mc.Labels[clusterv1.LabelClusterSet]; set != "" {
		metav1.SetMetaDataLabel(&p.ObjectMeta, multiclusterv1alpha1.LabelClusterSet, set)
	} else {
		delete(p.Labels, multiclusterv1alpha1.LabelClusterSet)
	}
}

// conditions maps the conditions of a profile to those they are copied from.
var conditions = []struct{ kind, of string }{
	{multiclusterv1alpha1.ConditionControlPlaneHealthy, clusterv1.ConditionAvailable},
	{multiclusterv1alpha1.ConditionJoined, clusterv1.ConditionJoined},
}

func setStatus(p *multiclusterv1alpha1.ClusterProfile, mc *clusterv1.ManagedCluster) {
	p.Status.Version.Kubernetes = mc.Status.Version.Kubernetes
	setAccess(p, mc)
	p.Status.Properties = nil
	for _, claim := range mc.Status.ClusterClaims {
		p.Status.Properties = append(p.Status.Properties, multiclusterv1alpha1.Property{Name: claim.Name, Value: claim.Value})
	}
	for _, c := range conditions {
		source := apimeta.FindStatusCondition(mc.Status.Conditions, c.of)
		if source == nil {
			apimeta.RemoveStatusCondition(&p.Status.Conditions, c.kind)
			continue
		}
		reconcile.SetCondition(&p.Status.Conditions, metav1.Condition{
			Type: c.kind, Status: source.Status, Reason: source.Reason, Message: source.Message, ObservedGeneration: p.Generation,
		}, source.LastTransitionTime.Time)
	}
}
