// SPDX-License-Identifier: Apache-2.0

package addonkit

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
)

// Given reports whether an administrator assigned a configuration to an instance: the
// instance names it in its spec, or its add-on names it as a default or for a placement,
// now or until a rollout completes. The agent of the cluster can write the status of an
// instance, which says what is to be used; reading what it names without checking Given
// would hand the settings of one cluster to another. An instance that is being deleted
// after its add-on has nothing but its status.
func Given(i Instance, c addonv1alpha1.AddOnConfig) bool {
	if slices.Contains(i.AddOn.Spec.Configs, c) {
		return true
	}
	if i.Of == nil {
		return i.AddOn.DeletionTimestamp != nil
	}
	return slices.Contains(Named(i.Of), c)
}

// Named returns the configurations that an add-on names for any cluster.
func Named(a *addonv1alpha1.ClusterManagementAddOn) []addonv1alpha1.AddOnConfig {
	var out []addonv1alpha1.AddOnConfig
	for _, kind := range a.Spec.SupportedConfigs {
		if d := kind.DefaultConfig; d != nil {
			out = append(out, addonv1alpha1.AddOnConfig{ConfigGroupResource: kind.ConfigGroupResource, ConfigReferent: *d})
		}
	}
	for _, p := range a.Spec.InstallStrategy.Placements {
		out = append(out, p.Configs...)
	}
	for _, p := range a.Status.InstallProgressions {
		for _, r := range p.ConfigReferences {
			for _, h := range []*addonv1alpha1.ConfigSpecHash{r.LastAppliedConfig, r.LastKnownGoodConfig} {
				if h != nil {
					out = append(out, addonv1alpha1.AddOnConfig{ConfigGroupResource: r.ConfigGroupResource, ConfigReferent: h.ConfigReferent})
				}
			}
		}
	}
	return out
}

// SpecHash returns the hash of a configuration's content: of the object as the API server
// holds it, without apiVersion, kind, metadata and status, as compact JSON with sorted
// keys, in lower-case hexadecimal. Add-ons compare it, so object must never have gone
// through a Go type, which may add or drop fields.
func SpecHash(object map[string]any) (string, error) {
	said := make(map[string]any, len(object))
	maps.Copy(said, object)
	for _, key := range []string{"apiVersion", "kind", "metadata", "status"} {
		delete(said, key)
	}
	raw, err := json.Marshal(said)
	if err != nil {
		return "", fmt.Errorf("encoding a configuration: %w", err)
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:]), nil
}

// Mark returns the value of the annotation config-spec-hash of ManifestWorks that are
// rendered with these references, or "" if there are none. It returns false while a hash is
// missing.
func Mark(refs []addonv1alpha1.ConfigReference) (string, bool) {
	if len(refs) == 0 {
		return "", true
	}
	hashes := map[string]string{}
	for _, r := range refs {
		at, hash := r.ConfigReferent, ""
		if r.DesiredConfig != nil {
			at, hash = r.DesiredConfig.ConfigReferent, r.DesiredConfig.SpecHash
		}
		if hash == "" {
			return "", false
		}
		kind := schema.GroupResource{Group: r.Group, Resource: r.Resource}
		hashes[kind.String()+"/"+at.Namespace+"/"+at.Name] = hash
	}
	raw, err := json.Marshal(hashes)
	return string(raw), err == nil
}
