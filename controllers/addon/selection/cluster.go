// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"cmp"
	"maps"
	"strings"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/addon/instance"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
)

// Cluster is what matters to add-ons in a ManagedCluster. That of one which does not exist is the zero
// value.
type Cluster struct {
	Exists bool
	// Annotations are those that matter to add-ons. They belong to the index and must not be changed.
	Annotations map[string]string
	// Deleting is true when the cluster is being deleted.
	Deleting bool
}

// Takes reports whether an install strategy may install the add-on on the cluster.
func (c Cluster) Takes(addOn string) bool { return c.Exists && !c.Deleting && !c.Excludes(addOn) }

// Excludes reports whether the cluster is excluded from the add-on's install strategy.
func (c Cluster) Excludes(addOn string) bool {
	_, out := c.Annotations[addonv1alpha1.AnnotationPrefixExclude+addOn]
	return out
}

// clusterOf returns what matters in a ManagedCluster.
func clusterOf(mc *clusterv1.ManagedCluster) Cluster {
	return Cluster{Exists: true, Deleting: mc.DeletionTimestamp != nil, Annotations: relevant(mc.Annotations)}
}

// relevant returns the annotations of a cluster that matter to add-ons; nil if none does.
func relevant(all map[string]string) map[string]string {
	var out map[string]string
	for key, value := range all {
		if !instance.Synced(key) && !strings.HasPrefix(key, addonv1alpha1.AnnotationPrefixExclude) {
			continue
		}
		if out == nil {
			out = map[string]string{}
		}
		out[key] = value
	}
	return out
}

// Clusters returns those of the clusters with these names that exist. The loops of add-ons read all
// of them in each pass, which is why the index holds what they need.
func (x *Index) Clusters(names map[string]bool) map[string]Cluster {
	x.mu.Lock()
	defer x.mu.Unlock()
	out := make(map[string]Cluster, len(names))
	for name := range names {
		if c, ok := x.clusters[name]; ok {
			out[name] = c
		}
	}
	return out
}

func (x *Index) clusterChanged(old, current *clusterv1.ManagedCluster) {
	name := cmp.Or(current, old).Name
	x.mu.Lock()
	before, now := x.clusters[name], Cluster{}
	if current == nil {
		delete(x.clusters, name)
	} else {
		now = clusterOf(current)
		x.clusters[name] = now
	}
	x.mu.Unlock()
	again := old != nil && current != nil && old.UID != current.UID
	if again || before.Exists != now.Exists || before.Deleting != now.Deleting || !maps.Equal(before.Annotations, now.Annotations) {
		x.tell(x.matching(ByPlacements))
	}
}
