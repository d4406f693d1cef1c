// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1beta2 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta2"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/naming"
)

// SelectorType returns how the members of a set are found.
func SelectorType(set *unstructured.Unstructured) string {
	kind, _, _ := unstructured.NestedString(set.Object, "spec", "clusterSelector", "selectorType")
	if kind == "" || kind == string(clusterv1beta2.SelectorTypeLegacyClusterSetLabel) {
		kind = string(clusterv1beta2.SelectorTypeExclusiveClusterSetLabel)
	}
	return kind
}

// Exclusive reports whether members of the set carry its name in their label.
func Exclusive(set *unstructured.Unstructured) bool {
	return SelectorType(set) == string(clusterv1beta2.SelectorTypeExclusiveClusterSetLabel)
}

// MembersOf returns the label selector of the members of a set. An empty one selects all, a
// missing one nothing.
func MembersOf(set *unstructured.Unstructured) (string, error) {
	if Exclusive(set) {
		return clusterv1.LabelClusterSet + "=" + set.GetName(), nil
	}
	raw, _, _ := unstructured.NestedMap(set.Object, "spec", "clusterSelector", "labelSelector")
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

// ReadSet reads a set; it is an error when it does not exist.
func ReadSet(ctx context.Context, hub *fleet.Cluster, name string) (*unstructured.Unstructured, error) {
	u, err := hub.Client.Resource(fleet.ManagedClusterSets).Get(ctx, name, fleet.GetOptions)
	switch {
	case apierrors.IsNotFound(err) && fleet.IsNoKind(err):
		return nil, fleet.NotHub(hub, "it does not serve "+fleet.ManagedClusterSets.GroupResource().String())
	case apierrors.IsNotFound(err):
		return nil, naming.NoSet(name, hub)
	}
	return u, fleet.Explain("reading managedclusterset "+name, hub, err)
}

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

// ClusterSelectsNothing is a selector that no object can match.
const ClusterSelectsNothing = "kubernetes.io/metadata.name,!kubernetes.io/metadata.name"
