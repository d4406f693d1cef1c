// SPDX-License-Identifier: Apache-2.0

package values

import (
	"sync"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
)

// known caches the content of configurations that all instances of an add-on share, by the
// hash that the hub computed: what has the hash is that content, however old it is.
type known struct {
	mu       sync.Mutex
	contents map[addonv1alpha1.ConfigReferent]content
}

type content struct {
	hash   string
	config *addonv1alpha1.AddOnDeploymentConfig
}

// get returns the content with that hash, or nil if it is not cached.
func (k *known) get(at addonv1alpha1.ConfigSpecHash) *addonv1alpha1.AddOnDeploymentConfig {
	k.mu.Lock()
	defer k.mu.Unlock()
	if c := k.contents[at.ConfigReferent]; c.hash == at.SpecHash {
		return c.config
	}
	return nil
}

// remember caches the newest content of an object.
func (k *known) remember(at addonv1alpha1.ConfigSpecHash, config *addonv1alpha1.AddOnDeploymentConfig) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.contents[at.ConfigReferent] = content{at.SpecHash, config}
}
