// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/naming"
)

// Targets say which managed clusters an operation is for. An empty value is an error and never
// means all.
type Targets struct {
	// Clusters are names.
	Clusters []string
	// Selector is a label selector.
	Selector string
	// Set is a cluster set.
	Set string
	// Placement is the namespace/name of a Placement; its current decision counts.
	Placement string
	// All means every cluster.
	All bool
}

// ClustersOf returns the clusters of one decision object.
func ClustersOf(decision *unstructured.Unstructured) []string {
	var out []string
	list, _, _ := unstructured.NestedSlice(decision.Object, "status", "decisions")
	for _, d := range list {
		if m, ok := d.(map[string]any); ok {
			if name, _ := m["clusterName"].(string); name != "" {
				out = append(out, name)
			}
		}
	}
	return out
}

// Empty reports whether nothing was given.
func (t Targets) Empty() bool {
	return len(t.Clusters) == 0 && t.Selector == "" && t.Set == "" && t.Placement == "" && !t.All
}

// Resolve returns the names of the clusters, sorted and without duplicates. Clusters given by
// name must exist.
func (t Targets) Resolve(ctx context.Context, hub *fleet.Cluster) ([]string, error) {
	if t.Empty() {
		return nil, fleet.Misuse("no cluster is named", "an empty selection never means all clusters", NameSome.With())
	}
	set := map[string]bool{}
	if len(t.Clusters) > 0 {
		if err := t.addNamed(ctx, hub, set); err != nil {
			return nil, err
		}
	}
	if t.Selector != "" || t.Set != "" || t.All {
		if _, err := labels.Parse(t.Selector); err != nil {
			return nil, fleet.Misuse(fmt.Sprintf("wrong label selector %q", t.Selector), err.Error(), ExampleSelector.With())
		}
		selector, err := (&ListOptions{Hub: hub, Set: t.Set, Selector: t.Selector}).selector(ctx)
		if err != nil {
			return nil, err
		}
		items, err := fleet.ListAll(ctx, hub, fleet.Query{Resource: fleet.ManagedClusters, Labels: selector})
		if err != nil {
			return nil, fleet.Explain("listing managedclusters", hub, err)
		}
		AddNames(set, items)
	}
	if t.Placement != "" {
		if err := t.Decided(ctx, hub, set); err != nil {
			return nil, err
		}
	}
	if len(set) == 0 {
		return nil, &fleet.Error{Message: "no cluster matches", Cause: t.text(), Fix: naming.ListClusters.On(hub)}
	}
	return slices.Sorted(maps.Keys(set)), nil
}

// addNamed adds the clusters that were given by name. One list reads them all.
func (t Targets) addNamed(ctx context.Context, hub *fleet.Cluster, set map[string]bool) error {
	items, err := fleet.ListAll(ctx, hub, fleet.Query{Resource: fleet.ManagedClusters})
	if err != nil {
		return fleet.Explain("listing managedclusters", hub, err)
	}
	have := map[string]bool{}
	AddNames(have, items)
	if len(have) == 0 {
		if err := fleet.NeedHub(ctx, hub); err != nil {
			return err
		}
	}
	for _, name := range t.Clusters {
		if !have[name] {
			return naming.NoCluster(name, hub)
		}
		set[name] = true
	}
	return nil
}

// PlacementName splits the namespace and name of the placement.
func (t Targets) PlacementName() (namespace, name string, err error) {
	namespace, name, _ = strings.Cut(t.Placement, "/")
	if namespace == "" || name == "" {
		err = fleet.Misuse(fmt.Sprintf("wrong placement %q", t.Placement), "", fleet.Advice("name it as NAMESPACE/NAME"))
	}
	return namespace, name, err
}

// Decided adds the clusters that a Placement has selected.
func (t Targets) Decided(ctx context.Context, hub *fleet.Cluster, set map[string]bool) error {
	namespace, name, err := t.PlacementName()
	if err != nil {
		return err
	}
	_, err = hub.Client.Resource(fleet.Placements).Namespace(namespace).Get(ctx, name, fleet.GetOptions)
	if apierrors.IsNotFound(err) && !fleet.IsNoKind(err) {
		return naming.NoPlacement(t.Placement, hub)
	}
	if err != nil {
		return fleet.Explain("reading placement "+t.Placement, hub, err)
	}
	return AddSelected(ctx, hub, namespace, name, set)
}

// AddSelected adds the clusters in the decisions of a placement to a set.
func AddSelected(ctx context.Context, hub *fleet.Cluster, namespace, name string, set map[string]bool) error {
	items, err := fleet.ListAll(ctx, hub, fleet.Query{Resource: fleet.PlacementDecisions, Namespace: namespace, Labels: clusterv1beta1.LabelPlacement +
		"=" + name})
	if err != nil {
		return fleet.Explain(fmt.Sprintf("listing the decisions of placement %s/%s", namespace, name), hub, err)
	}
	for i := range items {
		for _, cluster := range ClustersOf(&items[i]) {
			set[cluster] = true
		}
	}
	return nil
}

func (t Targets) text() string {
	var parts []string
	for _, p := range []struct{ what, value string }{{"selector ", t.Selector}, {"cluster set ", t.Set}, {"placement ", t.Placement}} {
		if p.value != "" {
			parts = append(parts, p.what+p.value)
		}
	}
	if t.All {
		parts = append(parts, "all clusters")
	}
	return strings.Join(parts, ", ")
}

// AddNames adds the names of objects to a set.
func AddNames(set map[string]bool, items []unstructured.Unstructured) {
	for i := range items {
		set[items[i].GetName()] = true
	}
}
