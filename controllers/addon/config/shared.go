// SPDX-License-Identifier: Apache-2.0

package config

import (
	"slices"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
)

// DefaultReferences returns the references to the defaults of an add-on. For kinds that the
// hub does not know, the hash is the one that the add-on's controller has set.
func DefaultReferences(addOn *addonv1alpha1.ClusterManagementAddOn, known Lookup) []addonv1alpha1.DefaultConfigReference {
	said := Shared(addOn.Status.DefaultConfigReferences)
	var out []addonv1alpha1.DefaultConfigReference
	for _, c := range Effective(Defaults(addOn.Spec)) {
		out = append(out, addonv1alpha1.DefaultConfigReference{ConfigGroupResource: c.ConfigGroupResource, DesiredConfig: withHash(c, known, said)})
	}
	return out
}

// withHash returns a configuration with its known hash or, for kinds that the hub does not
// know, the hash in said; a deleted object has none.
func withHash(c addonv1alpha1.AddOnConfig, known Lookup, said Hashes) *addonv1alpha1.ConfigSpecHash {
	out := &addonv1alpha1.ConfigSpecHash{ConfigReferent: c.ConfigReferent}
	if content, found := known(c); found {
		out.SpecHash = content.Hash
	} else if !isKnown(c.ConfigGroupResource) {
		out.SpecHash = said[c]
	}
	return out
}

// Progression returns the install progression of one placement, whose configurations take
// precedence over the defaults. It keeps the earlier progression's conditions and hashes if
// that named all of its configurations; otherwise it starts over.
func Progression(addOn *addonv1alpha1.ClusterManagementAddOn, placement addonv1alpha1.PlacementStrategy, known Lookup) addonv1alpha1.InstallProgression {
	before := Stored(addOn, placement.PlacementRef)
	effective := Effective(placement.Configs, Defaults(addOn.Spec))
	if slices.ContainsFunc(effective, func(c addonv1alpha1.AddOnConfig) bool { return findInstalled(before, c).DesiredConfig == nil }) {
		before = addonv1alpha1.InstallProgression{}
	}
	said := Shared(nil, before)
	out := addonv1alpha1.InstallProgression{PlacementRef: placement.PlacementRef, Conditions: slices.Clone(before.Conditions)}
	for _, c := range effective {
		old := findInstalled(before, c)
		out.ConfigReferences = append(out.ConfigReferences, addonv1alpha1.InstallConfigReference{
			ConfigGroupResource: c.ConfigGroupResource, DesiredConfig: withHash(c, known, said),
			LastAppliedConfig: old.LastAppliedConfig.DeepCopy(), LastKnownGoodConfig: old.LastKnownGoodConfig.DeepCopy(),
		})
	}
	return out
}

// Stored returns the install progression of a placement in the status of an add-on; an empty
// one if there is none.
func Stored(addOn *addonv1alpha1.ClusterManagementAddOn, of addonv1alpha1.PlacementRef) (none addonv1alpha1.InstallProgression) {
	for _, p := range addOn.Status.InstallProgressions {
		if p.PlacementRef == of {
			return p
		}
	}
	return none
}

// findInstalled returns the reference to an object; an empty one if there is none.
func findInstalled(p addonv1alpha1.InstallProgression, c addonv1alpha1.AddOnConfig) (none addonv1alpha1.InstallConfigReference) {
	for _, r := range p.ConfigReferences {
		if d := r.DesiredConfig; r.ConfigGroupResource == c.ConfigGroupResource && d != nil && d.ConfigReferent == c.ConfigReferent {
			return r
		}
	}
	return none
}

// Complete records that all clusters of a placement use the desired configurations.
func Complete(p *addonv1alpha1.InstallProgression) {
	for i := range p.ConfigReferences {
		r := &p.ConfigReferences[i]
		r.LastAppliedConfig, r.LastKnownGoodConfig = r.DesiredConfig.DeepCopy(), r.DesiredConfig.DeepCopy()
	}
}

// Shared returns the hashes in the default references and progressions of an add-on.
func Shared(defaults []addonv1alpha1.DefaultConfigReference, progressions ...addonv1alpha1.InstallProgression) Hashes {
	out := Hashes{}
	for _, r := range defaults {
		out.add(r.ConfigGroupResource, r.DesiredConfig)
	}
	for _, p := range progressions {
		for _, r := range p.ConfigReferences {
			out.add(r.ConfigGroupResource, r.DesiredConfig)
		}
	}
	return out
}
