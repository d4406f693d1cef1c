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

// Fill is what brings a cluster into a set: a set of a label selector takes those
// that have its labels, and nothing can be added to it. The cluster is named where
// the fleet has one only.
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

// fittingLabels are labels that a selector selects, as KEY=VALUE; false where it
// also forbids some, or asks for none.
func fittingLabels(selector *metav1.LabelSelector) (string, bool) {
	if selector == nil {
		return "", false
	}
	labels := maps.Clone(selector.MatchLabels)
	if labels == nil {
		labels = map[string]string{}
	}
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
