// SPDX-License-Identifier: Apache-2.0

package hashing

import (
	"slices"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// Content is what is known of a configuration object.
type Content struct {
	// Hash is its addonkit.SpecHash, Generation its metadata.generation; 0 for kinds that
	// have none.
	Hash       string
	Generation int64
}

// Lookup finds an object. read is false for a kind that is not read here, found is false
// for an object that does not exist.
type Lookup func(addonv1alpha1.AddOnConfig) (c Content, read, found bool)

// Shared plans the hashes in the status of an add-on. A missing object has none, so that
// its last hash is not mistaken for its content.
func Shared(addOn *addonv1alpha1.ClusterManagementAddOn, look Lookup) reconcile.Plan {
	if addOn.DeletionTimestamp != nil {
		return reconcile.Plan{}
	}
	out := addOn.DeepCopy()
	fill := func(kind addonv1alpha1.ConfigGroupResource, desired *addonv1alpha1.ConfigSpecHash) {
		if desired == nil {
			return
		}
		if c, read, _ := look(addonv1alpha1.AddOnConfig{ConfigGroupResource: kind, ConfigReferent: desired.ConfigReferent}); read {
			desired.SpecHash = c.Hash
		}
	}
	for _, r := range out.Status.DefaultConfigReferences {
		fill(r.ConfigGroupResource, r.DesiredConfig)
	}
	for _, p := range out.Status.InstallProgressions {
		for _, r := range p.ConfigReferences {
			fill(r.ConfigGroupResource, r.DesiredConfig)
		}
	}
	return reconcile.Plan{Object: out}
}

// Own plans the hashes of what an instance names itself, and the generations of everything
// it uses. What is known of a deleted object stays, so that running agents are not
// disturbed.
func Own(addOn *addonv1alpha1.ManagedClusterAddOn, look Lookup) reconcile.Plan {
	if addOn.DeletionTimestamp != nil {
		return reconcile.Plan{}
	}
	out := addOn.DeepCopy()
	for i := range out.Status.ConfigReferences {
		r := &out.Status.ConfigReferences[i]
		if r.DesiredConfig == nil {
			continue
		}
		at := addonv1alpha1.AddOnConfig{ConfigGroupResource: r.ConfigGroupResource, ConfigReferent: r.DesiredConfig.ConfigReferent}
		c, _, found := look(at)
		if !found {
			continue
		}
		r.LastObservedGeneration = c.Generation
		if slices.Contains(out.Spec.Configs, at) {
			r.DesiredConfig.SpecHash = c.Hash
		}
	}
	return reconcile.Plan{Object: out}
}
