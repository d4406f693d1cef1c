// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta2 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta2"
)

// fillLine is what to type to bring a cluster into a set: a set of a label selector
// takes those that have its labels, and nothing can be added to it. The cluster is
// named where the fleet has one only.
func fillLine(set *clusterv1beta2.ManagedClusterSet, clusters []string, hub *Cluster) string {
	cluster := "<cluster>"
	if len(clusters) == 1 {
		cluster = clusters[0]
	}
	if set.Spec.ClusterSelector.SelectorType != clusterv1beta2.SelectorTypeLabelSelector {
		return "kubectl ocm clusterset add " + set.Name + " -c " + cluster + hub.flag()
	}
	labels, ok := fittingLabels(set.Spec.ClusterSelector.LabelSelector)
	if !ok {
		return "kubectl get managedclusterset " + set.Name + " -o yaml" + hub.flag() + "      and change labels of a cluster so that spec.clusterSelector selects it"
	}
	return "kubectl label managedcluster " + cluster + " --overwrite " + labels + hub.flag()
}

// fittingLabels are labels that a selector selects, as they are typed; false where it
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
			labels[r.Key] = orElse(labels[r.Key], "true")
		default:
			return "", false
		}
	}
	var out []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		out = append(out, ShellWord(key+"="+labels[key]))
	}
	return strings.Join(out, " "), len(out) > 0
}
