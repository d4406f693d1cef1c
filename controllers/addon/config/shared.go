// SPDX-License-Identifier: Apache-2.0

package config

import (
	"slices"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
)

// DefaultReferences returns the references to the defaults of an add-on. For kinds that the
// hub does not know, the hash is the one that the add-on's controller has set.
func DefaultReferences(addOn *addonv1alpha1.ClusterManagementAddOn, known Lookup) []addonv1alpha1.DefaultConfigReference {
	said := Hashes{}
	for _, r := range addOn.Status.DefaultConfigReferences {
		said.add(r.ConfigGroupResource, r.DesiredConfig)
	}
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
	out := addonv1alpha1.InstallProgression{PlacementRef: placement.PlacementRef}
	before := addonv1alpha1.InstallProgression{}
	if i := slices.IndexFunc(
		addOn.Status.InstallProgressions,
		func(p addonv1alpha1.InstallProgression) bool { return p.PlacementRef == placement.PlacementRef },
	); i >= 0 {
		before = addOn.Status.InstallProgressions[i]
	}
	effective := Effective(placement.Configs, Defaults(addOn.Spec))
	old := make([]*addonv1alpha1.InstallConfigReference, len(effective))
	carried := true
	for i, c := range effective {
		old[i] = findInstalled(before.ConfigReferences, c)
		carried = carried && old[i] != nil
	}
	said := Hashes{}
	if carried {
		out.Conditions = slices.Clone(before.Conditions)
		for _, r := range before.ConfigReferences {
			said.add(r.ConfigGroupResource, r.DesiredConfig)
		}
	}
	for i, c := range effective {
		r := addonv1alpha1.InstallConfigReference{ConfigGroupResource: c.ConfigGroupResource, DesiredConfig: withHash(c, known, said)}
		if carried {
			r.LastAppliedConfig, r.LastKnownGoodConfig = old[i].LastAppliedConfig.DeepCopy(), old[i].LastKnownGoodConfig.DeepCopy()
		}
		out.ConfigReferences = append(out.ConfigReferences, r)
	}
	return out
}

func findInstalled(list []addonv1alpha1.InstallConfigReference, c addonv1alpha1.AddOnConfig) *addonv1alpha1.InstallConfigReference {
	for i := range list {
		if d := list[i].DesiredConfig; list[i].ConfigGroupResource == c.ConfigGroupResource && d != nil && d.ConfigReferent == c.ConfigReferent {
			return &list[i]
		}
	}
	return nil
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
