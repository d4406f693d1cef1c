// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1beta2 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta2"
)

// SetListOptions say which cluster sets to list.
type SetListOptions struct {
	Common
	// Hub is the hub.
	Hub *Cluster
	// Selector is a label selector on the sets.
	Selector string
}

// SetInfo is one cluster set at a glance.
type SetInfo struct {
	Name string `json:"name"`
	// SelectorType is ExclusiveClusterSetLabel or LabelSelector.
	SelectorType string `json:"selectorType"`
	// Selector is the label selector of its members; empty where it selects all
	// or cannot be used.
	Selector string `json:"selector"`
	// Problem says why the selector cannot be used; the set has no members then.
	Problem string `json:"problem,omitempty"`
	// Clusters counts members that are available, of all.
	Clusters Count `json:"clusters"`
	// Members are their names.
	Members []string `json:"members"`
	// Bound are the namespaces that may use the set.
	Bound []string `json:"boundNamespaces,omitempty"`
	// Namespaces are those that every member shall have.
	Namespaces []string `json:"managedNamespaces,omitempty"`
	// Empty is what the hub says of the set: True, False, or nothing yet.
	Empty   string            `json:"empty,omitempty"`
	Created metav1.Time       `json:"created"`
	Labels  map[string]string `json:"labels,omitempty"`
}

// ListSets lists cluster sets by name, with their members counted as the hub
// counts them (registration.md 5.6). It makes three lists, however many sets
// there are.
func ListSets(ctx context.Context, o SetListOptions) ([]SetInfo, error) {
	ctx, cancel, _ := o.begin(ctx)
	defer cancel()
	var sets, clusters, bindings []unstructured.Unstructured
	if err := listTogether(ctx, o.Hub,
		wanted{&sets, query{resource: managedClusterSets, labels: o.Selector}},
		wanted{&clusters, query{resource: managedClusters}},
		wanted{&bindings, query{resource: setBindings}},
	); err != nil {
		return nil, err
	}
	if len(sets) == 0 {
		if err := needHub(ctx, o.Hub); err != nil {
			return nil, err
		}
	}
	out := make([]SetInfo, 0, len(sets))
	for i := range sets {
		out = append(out, setInfo(&sets[i], clusters, bindings))
	}
	slices.SortFunc(out, func(a, b SetInfo) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

func setInfo(set *unstructured.Unstructured, clusters, bindings []unstructured.Unstructured) SetInfo {
	info := SetInfo{Name: set.GetName(), SelectorType: selectorType(set), Members: []string{}, Created: set.GetCreationTimestamp(), Labels: set.GetLabels()}
	text, err := membersOf(set)
	var members labels.Selector
	if err == nil {
		members, err = labels.Parse(text)
	}
	switch {
	case err != nil:
		info.Problem, members = oneLine(err.Error()), labels.Nothing()
	case text == clusterSelectsNothing:
		info.Problem = "without a labelSelector it selects nothing"
	default:
		info.Selector = text
	}
	for i := range clusters {
		if members.Matches(labels.Set(clusters[i].GetLabels())) {
			info.Members = append(info.Members, clusters[i].GetName())
			info.Clusters.add(conditionTrue(&clusters[i], clusterv1.ConditionAvailable))
		}
	}
	for i := range bindings {
		if bindings[i].GetName() == info.Name {
			info.Bound = append(info.Bound, bindings[i].GetNamespace())
		}
	}
	wanted, _, _ := unstructured.NestedSlice(set.Object, "spec", "managedNamespaces")
	for _, w := range wanted {
		if m, ok := w.(map[string]any); ok {
			info.Namespaces = append(info.Namespaces, fmt.Sprint(m["name"]))
		}
	}
	if c := apimeta.FindStatusCondition(conditionsOf(set), clusterv1beta2.ConditionClusterSetEmpty); c != nil {
		info.Empty = string(c.Status)
	}
	slices.Sort(info.Members)
	slices.Sort(info.Bound)
	return info
}

// selectorType is how the members of a set are found.
func selectorType(set *unstructured.Unstructured) string {
	kind, _, _ := unstructured.NestedString(set.Object, "spec", "clusterSelector", "selectorType")
	if kind == "" {
		kind = string(clusterv1beta2.SelectorTypeExclusiveClusterSetLabel)
	}
	return kind
}

// exclusive tells that the members of a set carry its name in their label.
func exclusive(set *unstructured.Unstructured) bool {
	return selectorType(set) == string(clusterv1beta2.SelectorTypeExclusiveClusterSetLabel)
}

// membersOf is the label selector of the members of a set.
func membersOf(set *unstructured.Unstructured) (string, error) {
	if exclusive(set) {
		return clusterv1.LabelClusterSet + "=" + set.GetName(), nil
	}
	raw, _, _ := unstructured.NestedMap(set.Object, "spec", "clusterSelector", "labelSelector")
	return selectorText(raw)
}

// readSet reads a set, which must be there.
func readSet(ctx context.Context, hub *Cluster, name string) (*unstructured.Unstructured, error) {
	u, err := hub.Client.Resource(managedClusterSets).Get(ctx, name, getOptions)
	switch {
	case apierrors.IsNotFound(err) && isNoKind(err):
		return nil, notHub(hub, "it does not serve "+managedClusterSets.GroupResource().String())
	case apierrors.IsNotFound(err):
		return nil, NoSet(name, hub)
	}
	return u, explain("reading managedclusterset "+name, hub, err)
}
