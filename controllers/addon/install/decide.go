// SPDX-License-Identifier: Apache-2.0

package install

import (
	"maps"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/addon/instance"
	"github.com/kubectl-ocm/kubectl-ocm/controllers/addon/selection"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	addonv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1beta1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// State is the input of Decide.
type State struct {
	// AddOn is the ClusterManagementAddOn.
	AddOn *addonv1alpha1.ClusterManagementAddOn
	// Placements are the placements of its install strategy.
	Placements []selection.Placement
	// Instances are all ManagedClusterAddOns with its name.
	Instances []instance.AddOn
	// Clusters are the existing ManagedClusters that are selected or have an instance, by
	// name.
	Clusters map[string]selection.Cluster
}

// Decide returns which instances to apply and to delete. It is a pure function.
func Decide(s State) reconcile.Plan {
	plan := reconcile.Plan{Order: reconcile.Parallel}
	managed, placed := selection.Managed(s.AddOn), selection.ByPlacements(s.AddOn)
	if s.AddOn.DeletionTimestamp != nil || (!managed && !placed) {
		return plan // its instances are garbage-collected
	}
	selected, open := selectedBy(s.Placements)
	present := map[string]bool{}
	for _, a := range s.Instances {
		present[a.Cluster] = true
		cluster := s.Clusters[a.Cluster]
		switch {
		case a.Deleting || cluster.Deleting:
		case managed && placed && (cluster.Excludes(a.Name) || !selected[a.Cluster] && !open):
			at := reconcile.Target{Resource: instance.Resource, Namespace: a.Cluster, Name: a.Name, UID: a.UID, Version: a.Version}
			plan.Writes = append(plan.Writes, reconcile.Remove{Target: at})
		default:
			if wanted := adopted(s.AddOn, a, cluster); !upToDate(a, wanted) {
				plan.Writes = append(plan.Writes, reconcile.Apply{Object: wanted})
			}
		}
	}
	if managed && placed {
		maps.DeleteFunc(selected, func(c string, _ bool) bool { return present[c] })
		plan.Writes = append(plan.Writes, missing(s, selected)...)
	}
	return plan
}

// selectedBy returns the clusters that placements select, and whether a placement has no
// decision yet, so that its selection is still open.
func selectedBy(placements []selection.Placement) (selected map[string]bool, open bool) {
	selected = map[string]bool{}
	for _, p := range placements {
		for _, c := range p.Clusters {
			selected[c] = true
		}
		open = open || (p.Found && !p.Decided)
	}
	return selected, open
}

// missing returns the applies for clusters that have no instance and should get one.
func missing(s State, clusters map[string]bool) (out []reconcile.Write) {
	for _, c := range slices.Sorted(maps.Keys(clusters)) {
		if cluster := s.Clusters[c]; cluster.Takes(s.AddOn.Name) {
			made := object(c, s.AddOn.Name)
			made.Annotations = synced(cluster.Annotations)
			made.OwnerReferences = []metav1.OwnerReference{owner(s.AddOn, true)}
			out = append(out, reconcile.Apply{Object: made})
		}
	}
	return out
}

func object(cluster, name string) *addonv1alpha1.ManagedClusterAddOn {
	return &addonv1alpha1.ManagedClusterAddOn{
		TypeMeta:   metav1.TypeMeta{APIVersion: addonv1alpha1.GroupVersion.String(), Kind: "ManagedClusterAddOn"},
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: name},
	}
}

// owner returns the owner reference by which an instance is deleted with its add-on. An
// object has at most one controller.
func owner(addOn *addonv1alpha1.ClusterManagementAddOn, controller bool) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: addonv1beta1.GroupVersion.String(), Kind: "ClusterManagementAddOn", Name: addOn.Name, UID: addOn.UID,
		Controller: &controller, BlockOwnerDeletion: new(true),
	}
}

// synced returns the annotations of a cluster that are copied to its instances. The install
// namespace is left out: here it is a field that belongs to the instance.
func synced(all map[string]string) map[string]string {
	out := map[string]string{}
	for key, value := range all {
		if instance.Synced(key) && key != addonv1alpha1.AnnotationInstallNamespace {
			out[key] = value
		}
	}
	return out
}

// adopted returns what this loop applies to an existing instance. Fields that it applied
// before and now leaves out would be removed: so it keeps annotations that were copied if
// there is no placement, and the owner of an instance that the hub no longer manages.
func adopted(addOn *addonv1alpha1.ClusterManagementAddOn, a instance.AddOn, cluster selection.Cluster) *addonv1alpha1.ManagedClusterAddOn {
	out := object(a.Cluster, a.Name)
	out.UID = a.UID // an instance deleted in the meantime is not recreated
	if selection.ByPlacements(addOn) {
		out.Annotations = synced(cluster.Annotations)
	} else {
		out.Annotations = map[string]string{}
		for _, key := range a.Given {
			out.Annotations[key] = a.Annotations[key]
		}
	}
	owned := slices.ContainsFunc(a.Owners, func(o metav1.OwnerReference) bool { return o.UID == addOn.UID })
	if owned || selection.Managed(addOn) {
		other := slices.ContainsFunc(a.Owners, func(o metav1.OwnerReference) bool { return o.UID != addOn.UID && ptr.Deref(o.Controller, false) })
		out.OwnerReferences = []metav1.OwnerReference{owner(addOn, !other)}
	}
	return out
}

// upToDate reports whether an instance has everything in wanted, and nothing else that this
// loop has applied.
func upToDate(a instance.AddOn, wanted *addonv1alpha1.ManagedClusterAddOn) bool {
	for key, value := range wanted.Annotations {
		if have, ok := a.Annotations[key]; !ok || have != value {
			return false
		}
	}
	for _, key := range a.Given {
		if _, ok := wanted.Annotations[key]; !ok {
			return false
		}
	}
	for _, o := range wanted.OwnerReferences {
		if !slices.ContainsFunc(a.Owners, func(have metav1.OwnerReference) bool { return sameOwner(have, o) }) {
			return false
		}
	}
	return true
}

// sameOwner compares with a reference in which both marks are set; an absent one is false.
func sameOwner(have, want metav1.OwnerReference) bool {
	have.Controller, have.BlockOwnerDeletion = new(ptr.Deref(have.Controller, false)), new(ptr.Deref(have.BlockOwnerDeletion, false))
	return reflect.DeepEqual(have, want)
}
