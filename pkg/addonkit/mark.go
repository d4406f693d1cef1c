// SPDX-License-Identifier: Apache-2.0

package addonkit

import (
	"encoding/json"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
)

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
		kind := r.Resource
		if r.Group != "" {
			kind += "." + r.Group
		}
		hashes[kind+"/"+at.Namespace+"/"+at.Name] = hash
	}
	raw, err := json.Marshal(hashes)
	return string(raw), err == nil
}
