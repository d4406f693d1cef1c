// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
)

// Targets say which managed clusters are meant. Nothing given is an error and
// never means all.
type Targets struct {
	// Clusters are names.
	Clusters []string
	// Selector is a label selector.
	Selector string
	// Set is a cluster set.
	Set string
	// Placement is namespace/name of a Placement; its decision of now counts.
	Placement string
	// All means every cluster.
	All bool
}

// Empty tells that nothing was given.
func (t Targets) Empty() bool {
	return len(t.Clusters) == 0 && t.Selector == "" && t.Set == "" && t.Placement == "" && !t.All
}

// Resolve returns the names meant, sorted, each once. Names that were given
// must exist.
func (t Targets) Resolve(ctx context.Context, hub *Cluster) ([]string, error) {
	if t.Empty() {
		return nil, usage("no cluster is named", "nothing never means all clusters", "name clusters by -c, -l, --clusterset, --placement, or all of them by --all")
	}
	set := map[string]bool{}
	if len(t.Clusters) > 0 {
		if err := t.named(ctx, hub, set); err != nil {
			return nil, err
		}
	}
	if t.Selector != "" || t.Set != "" || t.All {
		o := ListOptions{Hub: hub, Set: t.Set}
		selector := t.Selector
		if _, err := labels.Parse(selector); err != nil {
			return nil, usage(fmt.Sprintf("wrong label selector %q", selector), err.Error(), "for example -l env=prod")
		}
		if t.Set != "" {
			var err error
			if selector, err = o.inSet(ctx, selector); err != nil {
				return nil, err
			}
		}
		items, err := listAll(ctx, hub, query{resource: managedClusters, labels: selector})
		if err != nil {
			return nil, explain("listing managedclusters", hub, err)
		}
		addNames(set, items)
	}
	if t.Placement != "" {
		if err := t.decided(ctx, hub, set); err != nil {
			return nil, err
		}
	}
	if len(set) == 0 {
		return nil, &Error{Message: "no cluster matches", Cause: t.text(), Fix: "kubectl ocm cluster list" + hub.flag()}
	}
	return slices.Sorted(maps.Keys(set)), nil
}

// named adds the clusters that were given by name. All are read by one list.
func (t Targets) named(ctx context.Context, hub *Cluster, set map[string]bool) error {
	items, err := listAll(ctx, hub, query{resource: managedClusters})
	if err != nil {
		return explain("listing managedclusters", hub, err)
	}
	have := map[string]bool{}
	addNames(have, items)
	if len(have) == 0 {
		if err := needHub(ctx, hub); err != nil {
			return err
		}
	}
	for _, name := range t.Clusters {
		if !have[name] {
			return NoCluster(name, hub)
		}
		set[name] = true
	}
	return nil
}

// decided adds the clusters that a Placement has selected.
func (t Targets) decided(ctx context.Context, hub *Cluster, set map[string]bool) error {
	namespace, name, ok := strings.Cut(t.Placement, "/")
	if !ok || namespace == "" || name == "" {
		return usage(fmt.Sprintf("wrong placement %q", t.Placement), "", "name it as NAMESPACE/NAME")
	}
	_, err := hub.Client.Resource(placements).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) && !isNoKind(err) {
		return NoPlacement(t.Placement, hub)
	}
	if err != nil {
		return explain("reading placement "+t.Placement, hub, err)
	}
	items, err := listAll(ctx, hub, query{resource: placementDecisions, namespace: namespace, labels: clusterv1beta1.LabelPlacement + "=" + name})
	if err != nil {
		return explain("listing the decisions of placement "+t.Placement, hub, err)
	}
	for i := range items {
		for _, cluster := range clustersOf(&items[i]) {
			set[cluster] = true
		}
	}
	return nil
}

func (t Targets) text() string {
	var parts []string
	for _, p := range []struct{ flag, value string }{{"-l ", t.Selector}, {"--clusterset ", t.Set}, {"--placement ", t.Placement}} {
		if p.value != "" {
			parts = append(parts, p.flag+p.value)
		}
	}
	if t.All {
		parts = append(parts, "--all")
	}
	return strings.Join(parts, ", ")
}

func addNames(set map[string]bool, items []unstructured.Unstructured) {
	for i := range items {
		set[items[i].GetName()] = true
	}
}

// selectorText writes a label selector object as text; an empty one selects
// all, none at all selects nothing.
func selectorText(raw map[string]any) (string, error) {
	if raw == nil {
		return clusterSelectsNothing, nil
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

// clusterSelectsNothing is a selector that no object can match.
const clusterSelectsNothing = "kubernetes.io/metadata.name,!kubernetes.io/metadata.name"
