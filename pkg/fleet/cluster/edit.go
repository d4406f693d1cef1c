// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/write"
)

// EditOptions say which managed clusters to change.
type EditOptions struct {
	fleet.Common
	// Hub is the hub.
	Hub *fleet.Cluster
	// Targets are the clusters.
	Targets Targets
	// Overwrite replaces values that are already there.
	Overwrite bool
}

// edit makes the same change on every target. Clusters are independent; the error is of kind
// Partial when only some failed.
func (o *EditOptions) edit(ctx context.Context, change func(*unstructured.Unstructured) error) (fleet.ClusterChanges, error) {
	ctx, cancel, r := o.Begin(ctx)
	defer cancel()
	names, err := o.Targets.Resolve(ctx, o.Hub)
	if err != nil {
		return fleet.ClusterChanges{}, err
	}
	return fleet.Each(names, func(name string) (fleet.Change, error) {
		u := fleet.Named(clusterv1.GroupVersion.WithKind("ManagedCluster"), "", name)
		done, err := write.Edit(ctx, r, o.Hub, u, change)
		return done, fleet.Explain("changing managedcluster "+name, o.Hub, err)
	})
}

// exists is the error for a value that is set to something else.
func exists(cluster, what, value string) error {
	return fleet.Refuse(fmt.Sprintf("cluster %q already has the %s %s", cluster, what, value), "", Overwrite.With())
}

// LabelChange has labels to set, and keys of labels to remove.
type LabelChange struct {
	Set    map[string]string
	Remove []string
}

// Check returns why a change of labels cannot be made.
func (c *LabelChange) Check() error {
	if len(c.Set)+len(c.Remove) == 0 {
		return fleet.Misuse("no label is named", "", fleet.Advice("for example env=prod to set one, and env- to remove it"))
	}
	for _, key := range slices.Concat(slices.Sorted(maps.Keys(c.Set)), c.Remove) {
		value, set := c.Set[key]
		switch reasons := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...); {
		case len(reasons) > 0 && set:
			return fleet.Misuse(fmt.Sprintf("%q cannot be a label", key+"="+value), strings.Join(reasons, "; "), fleet.Advice("for example env=prod"))
		case len(reasons) > 0:
			return fleet.Misuse(fmt.Sprintf("%q cannot be the key of a label", key), strings.Join(reasons, "; "), fleet.Advice("for example env"))
		case set && slices.Contains(c.Remove, key):
			return fleet.Misuse(fmt.Sprintf("the label %s is both set and removed", key), "", fleet.Advice("leave one of them out"))
		case key == clusterv1.LabelClusterSet && set:
			return fleet.Misuse("the label "+key+" moves a cluster to another set", "the users of the set would lose the cluster", AddToSet.With("set", value))
		case key == clusterv1.LabelClusterSet:
			return fleet.Misuse("the label "+key+" moves a cluster to another set", "the users of the set would lose the cluster", DropFromSet.With())
		case strings.HasPrefix(key, clusterv1.LabelPrefixFeatureAddOn):
			return fleet.Misuse("the label "+key+" is written by the hub", "it says which add-ons a cluster has, and would be put back", nil)
		}
	}
	return nil
}

// Label sets and removes labels of clusters. A label with another value is refused without
// Overwrite.
func Label(ctx context.Context, o EditOptions, c LabelChange) (fleet.ClusterChanges, error) {
	if err := c.Check(); err != nil {
		return fleet.ClusterChanges{}, err
	}
	return o.edit(ctx, func(u *unstructured.Unstructured) error {
		labels := u.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		for key, value := range c.Set {
			if old, has := labels[key]; has && old != value && !o.Overwrite {
				return exists(u.GetName(), "label", key+"="+old)
			}
			labels[key] = value
		}
		for _, key := range c.Remove {
			delete(labels, key)
		}
		u.SetLabels(labels)
		return nil
	})
}
