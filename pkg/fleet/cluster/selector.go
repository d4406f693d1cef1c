// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
)

// Selector parses a selector in kubectl's syntax. The object has no "!=" operator; it means
// the same as "notin".
func Selector(text string) (*metav1.LabelSelector, error) {
	parsed, err := labels.Parse(text)
	if err != nil {
		return nil, err
	}
	rest := labels.NewSelector()
	var not []metav1.LabelSelectorRequirement
	requirements, _ := parsed.Requirements()
	for _, r := range requirements {
		if r.Operator() == selection.NotEquals {
			not = append(not, metav1.LabelSelectorRequirement{Key: r.Key(), Operator: metav1.LabelSelectorOpNotIn, Values: r.ValuesUnsorted()})
			continue
		}
		rest = rest.Add(r)
	}
	out, err := metav1.ParseToLabelSelector(rest.String())
	if err != nil {
		return nil, err
	}
	out.MatchExpressions = append(out.MatchExpressions, not...)
	return out, nil
}

// selectorText formats a label selector object as text; an empty one selects all, a missing
// one selects nothing.
func selectorText(raw map[string]any) (string, error) {
	if raw == nil {
		return ClusterSelectsNothing, nil
	}
	var selector metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &selector); err != nil {
		return "", err
	}
	parsed, err := metav1.LabelSelectorAsSelector(&selector)
	if err != nil {
		return "", err
	}
	return parsed.String(), nil
}

// ClusterSelectsNothing is a selector that no object can match.
const ClusterSelectsNothing = "kubernetes.io/metadata.name,!kubernetes.io/metadata.name"
