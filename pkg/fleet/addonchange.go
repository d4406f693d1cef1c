// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// AddOnOptions say which add-ons to bring to which clusters, or to take from them.
type AddOnOptions struct {
	Common
	// Hub is the hub.
	Hub *Cluster
	// Names of the add-ons.
	Names []string
	// Targets are the clusters.
	Targets Targets
	// InstallNamespace is where the agent shall run; empty leaves it as it is.
	InstallNamespace string
	// Configs are configuration objects for these clusters. Of each kind that is
	// named here they replace the whole list.
	Configs []addonv1alpha1.AddOnConfig
	// Objects are configuration objects to apply first, and to use like Configs.
	Objects []*unstructured.Unstructured
	// Variables are put into an AddOnDeploymentConfig of the cluster.
	Variables map[string]string
	// Labels and Annotations are added to those that are there.
	Labels, Annotations map[string]string
	// Warn is told what a person may not have meant; nil means nobody is.
	Warn func(string)
}

// addOnChange is one change of many add-ons on many clusters under way.
type addOnChange struct {
	AddOnOptions
	run *run
	// addOns are those that are registered, by name; selected the clusters that the
	// placements of their install strategies select.
	addOns   map[string]*addonv1alpha1.ClusterManagementAddOn
	selected map[string]map[string]bool
	// clusters are all ManagedClusters by name.
	clusters map[string]*unstructured.Unstructured

	mu sync.Mutex
	// beside are changes of other objects than add-ons.
	beside []Change
	// served are the kinds of the hub, once somebody has asked for one.
	served *served
}

// pair is one add-on on one cluster.
type pair struct{ addOn, cluster string }

// CheckAddOnName tells why an add-on cannot have this name: it is part of the names of
// works, secrets and users, and the value of labels.
func CheckAddOnName(name string) error {
	problems := validation.IsDNS1123Subdomain(name)
	if len(problems) == 0 {
		problems = validation.IsValidLabelValue(name)
	}
	if len(problems) > 0 {
		return usage(fmt.Sprintf("%q cannot be the name of an add-on", name), problems[0], "for example metrics")
	}
	return nil
}

// EnableAddOns brings add-ons to clusters. A cluster that was left out of the install
// strategy by DisableAddOns is no longer left out. Labels, annotations and
// configurations are merged with what is there. An add-on that its placements install
// is refused on other clusters, because the hub would take it away again. With Wait it
// returns when the add-ons are available, with the configurations of their clusters.
// The error is of kind Partial when only some failed. Contract: addon.md 4.2, 4.5.
func EnableAddOns(ctx context.Context, o AddOnOptions) (WorkResult, error) {
	ctx, cancel, r := o.begin(ctx)
	defer cancel()
	c := &addOnChange{AddOnOptions: o, run: r}
	pairs, err := c.gather(ctx, true)
	if err != nil {
		return WorkResult{}, err
	}
	if err := c.applyConfigs(ctx); err != nil {
		return WorkResult{}, err
	}
	return c.each(pairs, func(p pair) (Change, error) {
		if err := c.mayEnable(p); err != nil {
			return Change{}, err
		}
		included, err := c.include(ctx, p)
		if err != nil {
			return Change{}, err
		}
		change, err := c.enable(ctx, p)
		if included && change.Action == Unchanged {
			change.Action = Configured
		}
		if err != nil || !o.Wait || o.reads() {
			return change, err
		}
		return change, c.awaitEnabled(ctx, p)
	})
}

// gather reads what the change depends on, and which add-ons on which clusters are
// meant. need says that an add-on that nobody has registered is an error.
func (c *addOnChange) gather(ctx context.Context, need bool) ([]pair, error) {
	var registered, clusters []unstructured.Unstructured
	names, err := c.Targets.Resolve(ctx, c.Hub)
	if err != nil {
		return nil, err
	}
	if err := listTogether(ctx, c.Hub, wanted{&registered, query{resource: managementAddOns}}, wanted{&clusters, query{resource: managedClusters}}); err != nil {
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
	var out []pair
	for _, addOn := range c.Names {
		if err := CheckAddOnName(addOn); err != nil {
			return nil, err
		}
		if need && c.addOns[addOn] == nil {
			return nil, NoAddOn(addOn, c.Hub)
		}
		for _, cluster := range names {
			if p := (pair{addOn, cluster}); !slices.Contains(out, p) {
				out = append(out, p)
			}
		}
	}
	return out, nil
}

// each does something for every pair and adds what was done beside it.
func (c *addOnChange) each(pairs []pair, do func(pair) (Change, error)) (WorkResult, error) {
	names := make([]string, 0, len(pairs))
	for _, p := range pairs {
		names = append(names, p.cluster)
	}
	result, err := eachOf(names, func(i int) (Change, error) { return do(pairs[i]) })
	slices.SortFunc(c.beside, func(a, b Change) int { return strings.Compare(describe(a.Object), describe(b.Object)) })
	result.Items = append(c.beside, result.Items...)
	return result, err
}

// warn tells what a person may not have meant, one thing at a time.
func (c *addOnChange) warn(format string, args ...any) {
	if c.Warn != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.Warn(fmt.Sprintf(format, args...))
	}
}

// note keeps what was done beside; where something is decided on anew, only once.
func (c *addOnChange) note(change Change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if change.Action == Unchanged && slices.ContainsFunc(c.beside, func(b Change) bool { return describe(b.Object) == describe(change.Object) }) {
		return
	}
	c.beside = append(c.beside, change)
}

// byPlacements tells whether the hub installs the add-on by placements.
func byPlacements(a *addonv1alpha1.ClusterManagementAddOn) bool {
	return a != nil && managedByHub(a) && a.Spec.InstallStrategy.Type == addonv1alpha1.InstallStrategyPlacements
}

// selectedFor are the clusters that the placements of an add-on select; nil where
// there are none to look at.
func selectedFor(ctx context.Context, hub *Cluster, a *addonv1alpha1.ClusterManagementAddOn) (map[string]bool, error) {
	if !byPlacements(a) {
		return nil, nil
	}
	out := map[string]bool{}
	for _, p := range a.Spec.InstallStrategy.Placements {
		items, err := listAll(ctx, hub, query{resource: placementDecisions, namespace: p.Namespace, labels: clusterv1beta1.LabelPlacement + "=" + p.Name})
		if err != nil {
			return nil, explain(fmt.Sprintf("listing the decisions of placement %s/%s", p.Namespace, p.Name), hub, err)
		}
		for i := range items {
			for _, cluster := range clustersOf(&items[i]) {
				out[cluster] = true
			}
		}
	}
	return out, nil
}

// mayEnable refuses what the hub would undo.
func (c *addOnChange) mayEnable(p pair) error {
	a := c.addOns[p.addOn]
	if !byPlacements(a) || c.selected[p.addOn][p.cluster] {
		return nil
	}
	names := make([]string, 0, len(a.Spec.InstallStrategy.Placements))
	for _, s := range a.Spec.InstallStrategy.Placements {
		names = append(names, s.Namespace+"/"+s.Name)
	}
	return refused(fmt.Sprintf("no placement of the add-on %q selects cluster %q", p.addOn, p.cluster), "the hub would take it away again; its placements are: "+listed(names),
		"kubectl ocm addon enable "+p.addOn+" --placement NAMESPACE/NAME"+c.Hub.flag()+"      adds a placement that selects the cluster")
}

// include takes back that a cluster is left out of the install strategy.
func (c *addOnChange) include(ctx context.Context, p pair) (bool, error) {
	return c.annotate(ctx, p, nil)
}

// exclude leaves a cluster out of the install strategy.
func (c *addOnChange) exclude(ctx context.Context, p pair) (bool, error) {
	return c.annotate(ctx, p, "true")
}

// annotate writes the annotation that leaves a cluster out, nil to remove it, and
// tells whether that changed anything.
func (c *addOnChange) annotate(ctx context.Context, p pair, value any) (bool, error) {
	key := addonv1alpha1.AnnotationPrefixExclude + p.addOn
	mc := c.clusters[p.cluster]
	if mc == nil {
		return false, nil
	}
	if _, has := mc.GetAnnotations()[key]; has == (value != nil) {
		return false, nil
	}
	u := named(clusterv1.GroupVersion.WithKind("ManagedCluster"), "", p.cluster)
	u.Object["metadata"].(map[string]any)["annotations"] = map[string]any{key: value}
	change, err := c.run.merge(ctx, c.Hub, u)
	if err != nil {
		return false, explain("annotating managedcluster "+p.cluster, c.Hub, err)
	}
	if annotations, ok, _ := unstructured.NestedMap(change.Object.Object, "metadata", "annotations"); ok && annotations[key] == nil {
		unstructured.RemoveNestedField(change.Object.Object, "metadata", "annotations", key)
	}
	c.note(change)
	return change.Action != Unchanged, nil
}

func managedAddOn(p pair) *unstructured.Unstructured {
	return named(addonv1alpha1.GroupVersion.WithKind("ManagedClusterAddOn"), p.cluster, p.addOn)
}

// enable makes the add-on of a cluster, or changes what the options say of it.
func (c *addOnChange) enable(ctx context.Context, p pair) (change Change, err error) {
	u := managedAddOn(p)
	err = busy(u, again(func() (err error) {
		change, err = c.enableOnce(ctx, p, u.DeepCopy())
		return err
	}))
	if apierrors.IsNotFound(err) && !isNoKind(err) {
		err = &Error{Message: fmt.Sprintf("cluster %q has no namespace on the hub", p.cluster), Cause: "it is not accepted", Fix: "kubectl ocm accept " + p.cluster + c.Hub.flag(), Err: err}
	}
	return change, explain("applying "+describe(u), c.Hub, err)
}

// enableOnce does it in u, for the add-on as it is now.
func (c *addOnChange) enableOnce(ctx context.Context, p pair, u *unstructured.Unstructured) (Change, error) {
	live, err := c.run.live(ctx, c.Hub, u)
	if err != nil {
		return Change{}, explain("reading "+describe(u), c.Hub, err)
	}
	if live != nil && live.GetDeletionTimestamp() != nil {
		return Change{}, beingDeleted(live)
	}
	if err := c.describeInstance(ctx, p, u, live); err != nil {
		return Change{}, err
	}
	if live == nil {
		return c.run.create(ctx, c.Hub, u)
	}
	if !c.reads() {
		// The list of configurations was made of what was read.
		u.SetResourceVersion(live.GetResourceVersion())
	}
	return c.run.merge(ctx, c.Hub, u)
}

// describeInstance writes what the options say into the add-on of a cluster.
func (c *addOnChange) describeInstance(ctx context.Context, p pair, u, live *unstructured.Unstructured) error {
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
