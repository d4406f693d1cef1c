// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/json"
	"slices"

	"github.com/kubectl-ocm/kubectl-ocm/pkg/addonkit"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
)

// Lookup returns what is known of a configuration object; false if there is none.
type Lookup func(addonv1alpha1.AddOnConfig) (Content, bool)

// Desired is a configuration with what is known of its content.
type Desired struct {
	addonv1alpha1.AddOnConfig
	// Hash is empty while the content is not known.
	Hash string
	// Generation of the object; 0 while it is not known.
	Generation int64
}

// ByCluster makes of the effective configurations of one cluster what its add-on
// shall use. Content that the hub knows is taken from known. Of what the cluster
// itself names, an object that is gone is left as it was said to be, so that what
// runs is not disturbed; of other kinds the hash that is there stays, and what the
// add-on as a whole names has the hash that shared tells.
func ByCluster(effective, own []addonv1alpha1.AddOnConfig, have []addonv1alpha1.ConfigReference, known Lookup, shared Hashes) []Desired {
	out := make([]Desired, 0, len(effective))
	for _, c := range effective {
		d := Desired{AddOnConfig: c}
		before := find(have, c)
		if before != nil {
			d.Generation = before.LastObservedGeneration
		}
		content, found := known(c)
		switch {
		case found:
			d.Hash, d.Generation = content.Hash, content.Generation
		case Overridden(own, c.ConfigGroupResource):
			if before != nil {
				d.Hash = hashOf(before.DesiredConfig)
			}
		case read(c.ConfigGroupResource):
			d.Generation = 0
		default:
			d.Hash = shared[c]
		}
		out = append(out, d)
	}
	return out
}

// Hashes are the hashes of configurations that an add-on names for many clusters,
// as its status has them.
type Hashes map[addonv1alpha1.AddOnConfig]string

// add notes a configuration of a status.
func (h Hashes) add(kind addonv1alpha1.ConfigGroupResource, desired *addonv1alpha1.ConfigSpecHash) {
	if desired != nil && desired.SpecHash != "" {
		h[addonv1alpha1.AddOnConfig{ConfigGroupResource: kind, ConfigReferent: desired.ConfigReferent}] = desired.SpecHash
	}
}

// find returns the reference to an object; nil if there is none.
func find(have []addonv1alpha1.ConfigReference, c addonv1alpha1.AddOnConfig) *addonv1alpha1.ConfigReference {
	for i := range have {
		if have[i].ConfigGroupResource == c.ConfigGroupResource && Referent(have[i]) == c.ConfigReferent {
			return &have[i]
		}
	}
	return nil
}

// Referent is the object of a reference, also of one of the oldest form.
func Referent(r addonv1alpha1.ConfigReference) addonv1alpha1.ConfigReferent {
	if r.DesiredConfig != nil {
		return r.DesiredConfig.ConfigReferent
	}
	return r.ConfigReferent
}

func hashOf(c *addonv1alpha1.ConfigSpecHash) string {
	if c == nil {
		return ""
	}
	return c.SpecHash
}

// Given tells whether the references of a cluster are those desired, to the hash.
func Given(have []addonv1alpha1.ConfigReference, want []Desired) bool {
	return slices.EqualFunc(have, want, func(h addonv1alpha1.ConfigReference, w Desired) bool {
		return h.ConfigGroupResource == w.ConfigGroupResource && h.DesiredConfig != nil &&
			h.DesiredConfig.ConfigReferent == w.ConfigReferent && h.DesiredConfig.SpecHash == w.Hash
	})
}

// Applied tells whether of all references, or those of the kinds that which takes,
// what is desired is what was applied last.
func Applied(have []addonv1alpha1.ConfigReference, which func(addonv1alpha1.ConfigGroupResource) bool) bool {
	return !slices.ContainsFunc(have, func(h addonv1alpha1.ConfigReference) bool {
		if which != nil && !which(h.ConfigGroupResource) {
			return false
		}
		return h.DesiredConfig == nil || h.LastAppliedConfig == nil || *h.DesiredConfig != *h.LastAppliedConfig
	})
}

// References are those of a cluster that has been given what is desired. What was
// applied last is kept of those that it had.
func References(have []addonv1alpha1.ConfigReference, want []Desired) []addonv1alpha1.ConfigReference {
	var out []addonv1alpha1.ConfigReference
	for _, w := range want {
		r := addonv1alpha1.ConfigReference{
			ConfigGroupResource: w.ConfigGroupResource, ConfigReferent: w.ConfigReferent, LastObservedGeneration: w.Generation,
			DesiredConfig: &addonv1alpha1.ConfigSpecHash{ConfigReferent: w.ConfigReferent, SpecHash: w.Hash},
		}
		if before := find(have, w.AddOnConfig); before != nil {
			r.LastAppliedConfig = before.LastAppliedConfig.DeepCopy()
		}
		out = append(out, r)
	}
	return out
}

// Mark is the value of the annotation config-spec-hash of ManifestWorks that are
// made with these references, as add-ons write it.
func Mark(refs []addonv1alpha1.ConfigReference) (string, bool) { return addonkit.Mark(refs) }

// maxMark is how many bytes of the annotation are read; a name has at most 253.
const maxMark = 64 << 10

// ReadMark is what Mark would return of the annotation of a ManifestWork; ok is
// false for one that nothing can match.
func ReadMark(annotation string) (mark string, ok bool) {
	if annotation == "" {
		return "", true
	}
	hashes := map[string]string{}
	if len(annotation) > maxMark || json.Unmarshal([]byte(annotation), &hashes) != nil {
		return "", false
	}
	if len(hashes) == 0 {
		return "", true
	}
	raw, err := json.Marshal(hashes)
	return string(raw), err == nil
}
