// SPDX-License-Identifier: Apache-2.0

package clusterset

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1beta2 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta2"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/cluster"
)

// ListOptions say which cluster sets to list.
type ListOptions struct {
	fleet.Common
	// Hub is the hub.
	Hub *fleet.Cluster
	// Selector is a label selector on the sets.
	Selector string
}

// Info is the summary of one cluster set.
type Info struct {
	Name string `json:"name"`
	// SelectorType is ExclusiveClusterSetLabel or LabelSelector.
	SelectorType string `json:"selectorType"`
	// Selector is the label selector of its members; empty when it selects all or cannot be
	// used.
	Selector string `json:"selector"`
	// Problem is why the selector cannot be used; the set then has no members.
	Problem string `json:"problem,omitempty"`
	// Clusters counts the available members among all.
	Clusters cluster.Count `json:"clusters"`
	// Members are the names of the members.
	Members []string `json:"members"`
	// Bound are the namespaces that may use the set.
	Bound []string `json:"boundNamespaces,omitempty"`
	// Namespaces are those that every member is to have.
	Namespaces []string `json:"managedNamespaces,omitempty"`
	// Empty is the hub's status of the set: True, False, or empty while there is none.
	Empty   string            `json:"empty,omitempty"`
	Created metav1.Time       `json:"created"`
	Labels  map[string]string `json:"labels,omitempty"`
}

// List lists cluster sets by name and counts their members as the hub does. It sends three
// list requests, however many sets there are.
func List(ctx context.Context, o ListOptions) ([]Info, error) {
	ctx, cancel, _ := o.Begin(ctx)
	defer cancel()
	var sets, clusters, bindings []unstructured.Unstructured
	if err := fleet.ListTogether(ctx, o.Hub,
		fleet.Into(&sets, fleet.Query{Resource: fleet.ManagedClusterSets, Labels: o.Selector}),
		fleet.Into(&clusters, fleet.Query{Resource: fleet.ManagedClusters}),
		fleet.Into(&bindings, fleet.Query{Resource: fleet.SetBindings}),
	); err != nil {
		return nil, err
	}
	out := make([]Info, 0, len(sets))
	if len(sets) == 0 {
		return out, fleet.NeedHub(ctx, o.Hub)
	}
	for i := range sets {
		out = append(out, setInfo(&sets[i], clusters, bindings))
	}
	slices.SortFunc(out, func(a, b Info) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

func setInfo(set *unstructured.Unstructured, clusters, bindings []unstructured.Unstructured) Info {
	info := Info{Name: set.GetName(), SelectorType: cluster.SelectorType(set), Members: []string{}, Created: set.GetCreationTimestamp(), Labels: set.GetLabels()}
	text, err := cluster.MembersOf(set)
	var members labels.Selector
	if err == nil {
		members, err = labels.Parse(text)
	}
	switch {
	case err != nil:
		info.Problem, members = fleet.OneLine(err.Error()), labels.Nothing()
	case text == cluster.ClusterSelectsNothing:
		info.Problem = "without a labelSelector it selects nothing"
	default:
		info.Selector = text
	}
	for i := range clusters {
		if members.Matches(labels.Set(clusters[i].GetLabels())) {
			info.Members = append(info.Members, clusters[i].GetName())
			info.Clusters.Add(fleet.ConditionTrue(&clusters[i], clusterv1.ConditionAvailable))
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
	info.Empty = cluster.ConditionStatus(fleet.ConditionsOf(set), clusterv1beta2.ConditionClusterSetEmpty)
	slices.Sort(info.Members)
	slices.Sort(info.Bound)
	return info
}
