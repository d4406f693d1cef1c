// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/json"
	"slices"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
)

// Lookup returns the content of a configuration object; false if it is not known.
type Lookup func(addonv1alpha1.AddOnConfig) (Content, bool)

// Desired is a desired configuration with what is known of its content.
type Desired struct {
	addonv1alpha1.AddOnConfig
	// Hash is empty while the content is not known.
	Hash string
	// Generation of the object; 0 while not known.
	Generation int64
}

// ByCluster returns the configurations that the add-on should use on one cluster, with their
// hashes. Content that the hub knows is taken from known. For what the cluster itself names,
// a deleted object keeps its last hash, so that what runs is not disturbed, and other kinds
// keep their present hash. For other kinds that the add-on as a whole names, the hash is that
// in shared.
func ByCluster(effective, own []addonv1alpha1.AddOnConfig, have []addonv1alpha1.ConfigReference, known Lookup, shared Hashes) []Desired {
	out := make([]Desired, 0, len(effective))
	for _, c := range effective {
		before := findReference(have, c)
		d := Desired{AddOnConfig: c, Generation: before.LastObservedGeneration}
		content, found := known(c)
		switch {
		case found:
			d.Hash, d.Generation = content.Hash, content.Generation
		case Overridden(own, c.ConfigGroupResource):
			d.Hash = hashOf(before.DesiredConfig)
		case isKnown(c.ConfigGroupResource):
			d.Generation = 0
		default:
			d.Hash = shared[c]
		}
		out = append(out, d)
	}
	return out
}

// Hashes are the hashes in the status of an add-on, of configurations that it names for many
// clusters.
type Hashes map[addonv1alpha1.AddOnConfig]string

// add adds a configuration of a status, unless it has no hash.
func (h Hashes) add(kind addonv1alpha1.ConfigGroupResource, desired *addonv1alpha1.ConfigSpecHash) {
	if desired != nil && desired.SpecHash != "" {
		h[addonv1alpha1.AddOnConfig{ConfigGroupResource: kind, ConfigReferent: desired.ConfigReferent}] = desired.SpecHash
	}
}

// findReference returns the reference to an object; an empty one if there is none.
func findReference(have []addonv1alpha1.ConfigReference, c addonv1alpha1.AddOnConfig) (none addonv1alpha1.ConfigReference) {
	for _, h := range have {
		if h.ConfigGroupResource == c.ConfigGroupResource && Referent(h) == c.ConfigReferent {
			return h
		}
	}
	return none
}

// Referent returns the object of a reference, also of one in the oldest form.
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

// Given reports whether the references of a cluster equal the desired ones, including their
// hashes.
func Given(have []addonv1alpha1.ConfigReference, want []Desired) bool {
	return slices.EqualFunc(have, want, func(h addonv1alpha1.ConfigReference, w Desired) bool {
		return h.ConfigGroupResource == w.ConfigGroupResource && h.DesiredConfig != nil &&
			h.DesiredConfig.ConfigReferent == w.ConfigReferent && h.DesiredConfig.SpecHash == w.Hash
	})
}

// Applied reports whether the desired configuration of each reference is the one last
// applied. With which, only kinds for which it returns true count.
func Applied(have []addonv1alpha1.ConfigReference, which func(addonv1alpha1.ConfigGroupResource) bool) bool {
	return !slices.ContainsFunc(have, func(h addonv1alpha1.ConfigReference) bool {
		if which != nil && !which(h.ConfigGroupResource) {
			return false
		}
		return h.DesiredConfig == nil || h.LastAppliedConfig == nil || *h.DesiredConfig != *h.LastAppliedConfig
	})
}

// References returns the references of a cluster that gets the desired configurations.
// Existing references keep their last applied configuration.
func References(have []addonv1alpha1.ConfigReference, want []Desired) []addonv1alpha1.ConfigReference {
	var out []addonv1alpha1.ConfigReference
	for _, w := range want {
		out = append(out, addonv1alpha1.ConfigReference{
			ConfigGroupResource: w.ConfigGroupResource, ConfigReferent: w.ConfigReferent, LastObservedGeneration: w.Generation,
			DesiredConfig:     &addonv1alpha1.ConfigSpecHash{ConfigReferent: w.ConfigReferent, SpecHash: w.Hash},
			LastAppliedConfig: findReference(have, w.AddOnConfig).LastAppliedConfig.DeepCopy(),
		})
	}
	return out
}

// maxMark is the longest annotation that is read, in bytes; a name has at most 253.
const maxMark = 64 << 10

// ReadMark returns the annotation of a ManifestWork in the form that addonkit.Mark returns; ok
// is false if nothing can match it.
func ReadMark(annotation string) (mark string, ok bool) {
	hashes := map[string]string{}
	if annotation != "" && (len(annotation) > maxMark || json.Unmarshal([]byte(annotation), &hashes) != nil) {
		return "", false
	}
	if len(hashes) == 0 {
		return "", true
	}
	raw, err := json.Marshal(hashes)
	return string(raw), err == nil
}
