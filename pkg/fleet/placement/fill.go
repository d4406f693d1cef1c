// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta2 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta2"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
)

// Fill returns the fix that brings a cluster into a set: a set with a label selector selects
// clusters by their labels, and none can be added to it directly. The fix names the cluster
// when the fleet has only one.
func Fill(set *clusterv1beta2.ManagedClusterSet, clusters []string, hub *fleet.Cluster) fleet.Fix {
	cluster := ""
	if len(clusters) == 1 {
		cluster = clusters[0]
	}
	if set.Spec.ClusterSelector.SelectorType != clusterv1beta2.SelectorTypeLabelSelector {
		return AddToSet.On(hub, "set", set.Name, "cluster", cluster)
	}
	labels, ok := fittingLabels(set.Spec.ClusterSelector.LabelSelector)
	if !ok {
		return FitSelector.On(hub, "set", set.Name)
	}
	return LabelCluster.On(hub, "cluster", cluster, "labels", labels)
}

// fittingLabels returns labels that match a selector, as KEY=VALUE; false when the selector
// also forbids some, or requires none.
func fittingLabels(selector *metav1.LabelSelector) (string, bool) {
	if selector == nil {
		return "", false
	}
	labels := map[string]string{}
	maps.Copy(labels, selector.MatchLabels)
	for _, r := range selector.MatchExpressions {
		switch {
		case r.Operator == metav1.LabelSelectorOpIn && len(r.Values) > 0 && labels[r.Key] == "":
			labels[r.Key] = r.Values[0]
		case r.Operator == metav1.LabelSelectorOpExists:
			labels[r.Key] = fleet.OrElse(labels[r.Key], "true")
		default:
			return "", false
		}
	}
	var out []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		out = append(out, key+"="+labels[key])
	}
	return strings.Join(out, " "), len(out) > 0
}
