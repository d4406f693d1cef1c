// SPDX-License-Identifier: Apache-2.0

package addon

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/cluster"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/naming"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/write"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// Options say which add-ons to enable on which clusters, or to disable there.
type Options struct {
	fleet.Common
	// Hub is the hub.
	Hub *fleet.Cluster
	// Names of the add-ons.
	Names []string
	// Targets are the clusters.
	Targets cluster.Targets
	// InstallNamespace is the namespace for the agent; empty leaves it as it is.
	InstallNamespace string
	// Configs are configuration objects for these clusters. For each kind named here they
	// replace the whole list.
	Configs []addonv1alpha1.AddOnConfig
	// Objects are configuration objects to apply first, and to use like Configs.
	Objects []*unstructured.Unstructured
	// Variables are set in an AddOnDeploymentConfig of the cluster.
	Variables map[string]string
	// Labels and Annotations are merged into the existing ones.
	Labels, Annotations map[string]string
	// Warn is called with warnings about what may be a mistake; it may be nil.
	Warn func(string)
}

// change is one change in progress, of many add-ons on many clusters.
type change struct {
	Options
	run *fleet.Run
	// addOns are the registered ones, by name; selected are the clusters that the placements
	// of their install strategies select.
	addOns   map[string]*addonv1alpha1.ClusterManagementAddOn
	selected map[string]map[string]bool
	// clusters are all ManagedClusters by name.
	clusters map[string]*unstructured.Unstructured

	mu sync.Mutex
	// beside are changes of objects other than add-ons.
	beside []fleet.Change
	// served are the resources that the hub serves, once they have been read.
	served *fleet.Served
}

// Pair is one add-on on one cluster.
type Pair struct {
	// AddOn and Cluster are their names.
	AddOn, Cluster string
}

// CheckName returns why an add-on cannot have this name: it is part of the names of works,
// secrets and users, and a label value.
func CheckName(name string) error { return naming.CheckValue(name, "an add-on", "metrics") }

// Enable enables add-ons on clusters. A cluster that Disable excluded from the install
// strategy is included again. Labels, annotations and configurations are merged with the
// existing ones. An add-on that its placements install is refused on other clusters, because
// the hub would remove it again. With Wait it returns when the add-ons are available, with the
// configurations of their clusters. The error is of kind Partial when only some failed.
func Enable(ctx context.Context, o Options) (fleet.ClusterChanges, error) {
	ctx, cancel, r := o.Begin(ctx)
	defer cancel()
	c := &change{Options: o, run: r}
	pairs, err := c.gather(ctx, true)
	if err != nil {
		return fleet.ClusterChanges{}, err
	}
	if err := c.applyConfigs(ctx); err != nil {
		return fleet.ClusterChanges{}, err
	}
	return c.each(pairs, func(p Pair) (fleet.Change, error) {
		if err := c.checkEnable(p); err != nil {
			return fleet.Change{}, err
		}
		included, err := c.annotate(ctx, p, nil)
		if err != nil {
			return fleet.Change{}, err
		}
		change, err := c.enable(ctx, p)
		if included && change.Action == fleet.Unchanged {
			change.Action = fleet.Configured
		}
		if err != nil || !o.Wait || o.Reads() {
			return change, err
		}
		return change, c.awaitEnabled(ctx, p)
	})
}

// gather reads what the change depends on and returns the pairs to act on. With need, an
// add-on that is not registered is an error.
func (c *change) gather(ctx context.Context, need bool) ([]Pair, error) {
	var registered, clusters []unstructured.Unstructured
	names, err := c.Targets.Resolve(ctx, c.Hub)
	if err != nil {
		return nil, err
	}
	if err := fleet.ListTogether(ctx, c.Hub, fleet.Into(&registered, fleet.Query{Resource: fleet.ManagementAddOns}),
		fleet.Into(&clusters, fleet.Query{Resource: fleet.ManagedClusters})); err != nil {
		return nil, err
	}
	c.addOns, c.selected, c.clusters = map[string]*addonv1alpha1.ClusterManagementAddOn{}, map[string]map[string]bool{}, map[string]*unstructured.Unstructured{}
	for i := range registered {
		if name := registered[i].GetName(); slices.Contains(c.Names, name) {
			if c.addOns[name], err = typed.FromUnstructured[addonv1alpha1.ClusterManagementAddOn](&registered[i]); err != nil {
				return nil, err
			}
			if c.selected[name], err = selectedFor(ctx, c.Hub, c.addOns[name]); err != nil {
				return nil, err
			}
		}
	}
	for i := range clusters {
		c.clusters[clusters[i].GetName()] = &clusters[i]
	}
	var out []Pair
	for _, addOn := range c.Names {
		if err := CheckName(addOn); err != nil {
			return nil, err
		}
		if need && c.addOns[addOn] == nil {
			return nil, naming.NoAddOn(addOn, c.Hub)
		}
		for _, cluster := range names {
			if p := (Pair{addOn, cluster}); !slices.Contains(out, p) {
				out = append(out, p)
			}
		}
	}
	return out, nil
}

// each runs do for every pair and adds the changes of other objects.
func (c *change) each(pairs []Pair, do func(Pair) (fleet.Change, error)) (fleet.ClusterChanges, error) {
	names := make([]string, 0, len(pairs))
	for _, p := range pairs {
		names = append(names, p.Cluster)
	}
	result, err := fleet.EachOf(names, func(i int) (fleet.Change, error) { return do(pairs[i]) })
	slices.SortFunc(c.beside, func(a, b fleet.Change) int {
		return strings.Compare(fleet.Describe(a.Object), fleet.Describe(b.Object))
	})
	result.Items = append(c.beside, result.Items...)
	return result, err
}

// warn calls Warn; calls never overlap.
func (c *change) warn(format string, args ...any) {
	if c.Warn != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.Warn(fmt.Sprintf(format, args...))
	}
}

// recordBeside records a change of another object, once even when a conflict repeats the write.
func (c *change) recordBeside(change fleet.Change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if change.Action == fleet.Unchanged && slices.ContainsFunc(c.beside,
		func(b fleet.Change) bool { return fleet.Describe(b.Object) == fleet.Describe(change.Object) }) {
		return
	}
	c.beside = append(c.beside, change)
}

// isInstalledByPlacements reports whether the hub installs the add-on by placements.
func isInstalledByPlacements(a *addonv1alpha1.ClusterManagementAddOn) bool {
	return a != nil && ManagedByHub(a) && a.Spec.InstallStrategy.Type == addonv1alpha1.InstallStrategyPlacements
}

// selectedFor returns the clusters that the placements of an add-on select; nil when it has no
// placements.
func selectedFor(ctx context.Context, hub *fleet.Cluster, a *addonv1alpha1.ClusterManagementAddOn) (map[string]bool, error) {
	if !isInstalledByPlacements(a) {
		return nil, nil
	}
	out := map[string]bool{}
	for _, p := range a.Spec.InstallStrategy.Placements {
		if err := cluster.AddSelected(ctx, hub, p.Namespace, p.Name, out); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// checkEnable refuses what the hub would undo.
func (c *change) checkEnable(p Pair) error {
	a := c.addOns[p.AddOn]
	if !isInstalledByPlacements(a) || c.selected[p.AddOn][p.Cluster] {
		return nil
	}
	return fleet.Refuse(fmt.Sprintf("no placement of the add-on %q selects cluster %q", p.AddOn, p.Cluster),
		"the hub would remove it again; its placements are: "+fleet.Listed(placementsOf(a)),
		AddPlacement.On(c.Hub, "addon", p.AddOn))
}

// annotate sets the annotation that excludes a cluster from the install strategy: "true"
// excludes it, nil includes it again. It reports whether that changed anything.
func (c *change) annotate(ctx context.Context, p Pair, value any) (bool, error) {
	key := addonv1alpha1.AnnotationPrefixExclude + p.AddOn
	mc := c.clusters[p.Cluster]
	if mc == nil {
		return false, nil
	}
	if _, has := mc.GetAnnotations()[key]; has == (value != nil) {
		return false, nil
	}
	u := fleet.Named(clusterv1.GroupVersion.WithKind("ManagedCluster"), "", p.Cluster)
	u.Object["metadata"].(map[string]any)["annotations"] = map[string]any{key: value}
	change, err := write.Merge(ctx, c.run, c.Hub, u)
	if err != nil {
		return false, fleet.Explain("annotating managedcluster "+p.Cluster, c.Hub, err)
	}
	if annotations, ok, _ := unstructured.NestedMap(change.Object.Object, "metadata", "annotations"); ok && annotations[key] == nil {
		unstructured.RemoveNestedField(change.Object.Object, "metadata", "annotations", key)
	}
	c.recordBeside(change)
	return change.Action != fleet.Unchanged, nil
}

func managedAddOn(p Pair) *unstructured.Unstructured {
	return fleet.Named(addonv1alpha1.GroupVersion.WithKind("ManagedClusterAddOn"), p.Cluster, p.AddOn)
}

// enable creates the add-on of a cluster, or changes what the options name.
func (c *change) enable(ctx context.Context, p Pair) (change fleet.Change, err error) {
	u := managedAddOn(p)
	err = write.Busy(u, write.Again(func() (err error) {
		change, err = c.enableOnce(ctx, p, u.DeepCopy())
		return err
	}))
	if apierrors.IsNotFound(err) && !fleet.IsNoKind(err) {
		err = &fleet.Error{Message: fmt.Sprintf("cluster %q has no namespace on the hub", p.Cluster), Cause: "it is not accepted",
			Fix: fleet.AcceptCluster.On(c.Hub, "cluster", p.Cluster), Err: err}
	}
	return change, fleet.Explain("applying "+fleet.Describe(u), c.Hub, err)
}

// enableOnce is one attempt of enable; u is the add-on to apply, based on what is live now.
func (c *change) enableOnce(ctx context.Context, p Pair, u *unstructured.Unstructured) (fleet.Change, error) {
	live, err := write.Live(ctx, c.Hub, u)
	if err != nil {
		return fleet.Change{}, fleet.Explain("reading "+fleet.Describe(u), c.Hub, err)
	}
	if live != nil && live.GetDeletionTimestamp() != nil {
		return fleet.Change{}, fleet.BeingDeleted(live)
	}
	if err := c.describeInstance(ctx, p, u, live); err != nil {
		return fleet.Change{}, err
	}
	if live == nil {
		return write.Create(ctx, c.run, c.Hub, u)
	}
	if !c.Reads() {
		// The list of configurations is based on the version that was read.
		u.SetResourceVersion(live.GetResourceVersion())
	}
	return write.Merge(ctx, c.run, c.Hub, u)
}

// describeInstance writes the options into the add-on of a cluster.
func (c *change) describeInstance(ctx context.Context, p Pair, u, live *unstructured.Unstructured) error {
	if len(c.Labels) > 0 {
		u.SetLabels(c.Labels)
	}
	if len(c.Annotations) > 0 {
		u.SetAnnotations(c.Annotations)
	}
	spec := map[string]any{}
	if c.InstallNamespace != "" {
		spec["installNamespace"] = c.InstallNamespace
	}
	configs, err := c.configsFor(ctx, p, live)
	if err != nil {
		return err
	}
	if len(configs) > 0 {
		spec["configs"] = configs
	}
	if live == nil || len(spec) > 0 {
		u.Object["spec"] = spec
	}
	return nil
}
