// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kubectl-ocm/kubectl-ocm/internal/excerpt"
	clusterv1beta2 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta2"
)

// Bounds of a message about a selector: the number of faults, and the bytes of each.
const (
	maxFaults = 3
	maxFault  = 300
)

// selection is how a set finds its members.
type selection struct {
	// Exclusive is true for sets whose members are the clusters with the label of the set;
	// Selector is nil then.
	Exclusive bool
	// Selector matches the members' labels.
	Selector labels.Selector
	// Keys are the label keys the selector uses, sorted.
	Keys []string
}

// parseSelector parses the selector of a set: no type means the label of the set; without a
// labelSelector no cluster is selected, with an empty one all are. The error names the field
// and how to fix it; it is at most some kilobytes long, however large the selector is.
func parseSelector(set *clusterv1beta2.ManagedClusterSet) (selection, error) {
	s := set.Spec.ClusterSelector
	switch s.SelectorType {
	case "", clusterv1beta2.SelectorTypeExclusiveClusterSetLabel, clusterv1beta2.SelectorTypeLegacyClusterSetLabel:
		if faults := validation.IsValidLabelValue(set.Name); len(faults) > 0 {
			return selection{}, fmt.Errorf("metadata.name cannot be the value of a label, so no cluster can carry it (%s): "+
				"use a name of at most 63 letters and digits, or spec.clusterSelector.selectorType LabelSelector", strings.Join(faults, "; "))
		}
		return selection{Exclusive: true}, nil
	case clusterv1beta2.SelectorTypeLabelSelector:
		return byLabels(s.LabelSelector)
	default:
		return selection{}, fmt.Errorf("spec.clusterSelector.selectorType %.100q is not known: use ExclusiveClusterSetLabel or LabelSelector", s.SelectorType)
	}
}

func byLabels(s *metav1.LabelSelector) (selection, error) {
	faults := metav1validation.ValidateLabelSelector(
		s, metav1validation.LabelSelectorValidationOptions{},
		field.NewPath("spec", "clusterSelector", "labelSelector"),
	)
	if len(faults) > 0 {
		return selection{}, explain(faults)
	}
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return selection{}, fmt.Errorf("spec.clusterSelector.labelSelector: %w", err)
	}
	keys := names{}
	requirements, _ := selector.Requirements()
	for _, r := range requirements {
		keys.Insert(r.Key())
	}
	return selection{Selector: selector, Keys: slices.Sorted(maps.Keys(keys))}, nil
}

// explain returns the first faults of a selector and how to fix them.
func explain(faults field.ErrorList) error {
	var out []string
	for _, f := range faults[:min(len(faults), maxFaults)] {
		out = append(out, excerpt.Of(f.Error(), maxFault))
	}
	if more := len(faults) - len(out); more > 0 {
		out = append(out, fmt.Sprintf("and %d more", more))
	}
	return fmt.Errorf("%s; operators are In and NotIn with values, Exists and DoesNotExist without; keys and values are those of labels", strings.Join(out, "; "))
}
