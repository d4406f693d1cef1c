// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// AddOnResult is what happened to the objects of add-ons.
type AddOnResult struct {
	Items []Change `json:"items"`
}

// LostByPlacement returns the add-ons, as "NAME on CLUSTER", that the hub takes away
// when EnableByPlacement has put the add-ons under the placement: those that were
// enabled by hand on clusters that no placement selects. A placement that is not
// decided yet selects nobody; AwaitDecided waits for it.
func LostByPlacement(ctx context.Context, o AddOnOptions) ([]string, error) {
	ctx, cancel, r := o.begin(ctx)
	defer cancel()
	c := &addOnChange{AddOnOptions: o, run: r}
	addOns, err := c.readAddOns(ctx)
	if err != nil {
		return nil, err
	}
	items, err := listAll(ctx, o.Hub, query{resource: clusterAddOns})
	if err != nil {
		return nil, explain("listing managedclusteraddons", o.Hub, err)
	}
	var out []string
	for i, a := range addOns {
		wanted, err := c.underPlacement(ctx, a)
		if err != nil {
			return nil, err
		}
		selected, err := selectedFor(ctx, o.Hub, wanted)
		if err != nil {
			return nil, err
		}
		for j := range items {
			if cluster := items[j].GetNamespace(); items[j].GetName() == o.Names[i] && !selected[cluster] {
				out = append(out, o.Names[i]+" on "+cluster)
			}
		}
	}
	slices.Sort(out)
	return out, nil
}

// EnableByPlacement adds the placement to the install strategies of add-ons: the hub
// keeps them on the clusters that it selects, now and later. Placements that are in a
// strategy already stay there. Configurations are those of this placement. Contract:
// addon.md 2.2, 4.2.
func EnableByPlacement(ctx context.Context, o AddOnOptions) (AddOnResult, error) {
	ctx, cancel, r := o.begin(ctx)
	defer cancel()
	c := &addOnChange{AddOnOptions: o, run: r}
	addOns, err := c.readAddOns(ctx)
	if err != nil {
		return AddOnResult{}, err
	}
	if err := c.applyConfigs(ctx); err != nil {
		return AddOnResult{}, err
	}
	out := AddOnResult{Items: c.beside}
	for _, a := range addOns {
		var change Change
		u := named(addonv1alpha1.GroupVersion.WithKind("ClusterManagementAddOn"), "", a.Name)
		err := again(func() (err error) {
			if a == nil {
				a, err = readAddOn(ctx, o.Hub, u.GetName())
			}
			switch {
			case err != nil:
				return err
			case a == nil:
				return NoAddOn(u.GetName(), o.Hub)
			}
			change, err = c.addPlacement(ctx, a, u.DeepCopy())
			a = nil // it is read again
			return err
		})
		if err != nil {
			return out, explain("changing "+describe(u), o.Hub, busy(u, err))
		}
		out.Items = append(out.Items, change)
	}
	return out, nil
}

// addPlacement writes the placement into u, which names the add-on.
func (c *addOnChange) addPlacement(ctx context.Context, a *addonv1alpha1.ClusterManagementAddOn, u *unstructured.Unstructured) (Change, error) {
	wanted, err := c.underPlacement(ctx, a)
	if err != nil {
		return Change{}, err
	}
	strategy, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&wanted.Spec.InstallStrategy)
	if err != nil {
		return Change{}, fmt.Errorf("encoding the install strategy of %s: %w", a.Name, err)
	}
	if !c.reads() {
		u.SetResourceVersion(a.ResourceVersion)
	}
	u.Object["spec"] = map[string]any{"installStrategy": strategy}
	return c.run.merge(ctx, c.Hub, u)
}

// readAddOns reads the add-ons of the options, in their order.
func (c *addOnChange) readAddOns(ctx context.Context) ([]*addonv1alpha1.ClusterManagementAddOn, error) {
	var out []*addonv1alpha1.ClusterManagementAddOn
	for _, name := range c.Names {
		a, err := readAddOn(ctx, c.Hub, name)
		if err != nil {
			return nil, err
		}
		if a == nil {
			if err := needHub(ctx, c.Hub); err != nil {
				return nil, err
			}
			return nil, NoAddOn(name, c.Hub)
		}
		out = append(out, a)
	}
	return out, nil
}

// readAddOn reads one add-on, nil when there is none.
func readAddOn(ctx context.Context, hub *Cluster, name string) (*addonv1alpha1.ClusterManagementAddOn, error) {
	if err := CheckAddOnName(name); err != nil {
		return nil, err
	}
	a, err := typed.Get[addonv1alpha1.ClusterManagementAddOn](ctx, hub.Client, managementAddOns, "", name)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return a, explain("reading clustermanagementaddon "+name, hub, err)
}

// underPlacement is the add-on with the placement in its install strategy.
func (c *addOnChange) underPlacement(ctx context.Context, a *addonv1alpha1.ClusterManagementAddOn) (*addonv1alpha1.ClusterManagementAddOn, error) {
	namespace, name, ok := strings.Cut(c.Targets.Placement, "/")
	if !ok || namespace == "" || name == "" {
		return nil, usage(fmt.Sprintf("wrong placement %q", c.Targets.Placement), "", "name it as NAMESPACE/NAME")
	}
	if !managedByHub(a) {
		return nil, refused(fmt.Sprintf("the add-on %q installs itself", a.Name), "its annotation "+addonv1alpha1.AnnotationLifecycle+" says so, and the hub follows no placement for it", "leave --placement out, and name clusters")
	}
	if _, err := c.readPlacement(ctx, namespace, name); err != nil {
		return nil, err
	}
	out := a.DeepCopy()
	s := &out.Spec.InstallStrategy
	s.Type = addonv1alpha1.InstallStrategyPlacements
	ref := addonv1alpha1.PlacementRef{Namespace: namespace, Name: name}
	at := slices.IndexFunc(s.Placements, func(p addonv1alpha1.PlacementStrategy) bool { return p.PlacementRef == ref })
	if at < 0 {
		at = len(s.Placements)
		s.Placements = append(s.Placements, addonv1alpha1.PlacementStrategy{PlacementRef: ref})
	}
	if len(c.Configs) > 0 {
		s.Placements[at].Configs = append(slices.DeleteFunc(s.Placements[at].Configs, func(old addonv1alpha1.AddOnConfig) bool {
			return slices.ContainsFunc(c.Configs, func(g addonv1alpha1.AddOnConfig) bool { return g.ConfigGroupResource == old.ConfigGroupResource })
		}), c.Configs...)
	}
	return out, nil
}

// DeleteAddOn deletes an add-on from the hub: its registration, itself from every
// cluster, and the templates that were made for it. With Wait it returns when all of
// it is gone; the templates go last, because hooks are rendered of them, and without
// Wait they stay. Contract: addon.md 4.3, 5.7.
func DeleteAddOn(ctx context.Context, o AddOnOptions) (AddOnResult, error) {
	ctx, cancel, r := o.begin(ctx)
	defer cancel()
	c := &addOnChange{AddOnOptions: o, run: r}
	name := o.Names[0]
	var registered, instances, made, set []unstructured.Unstructured
	if err := listTogether(ctx, o.Hub,
		wanted{&registered, query{resource: managementAddOns}}, wanted{&instances, query{resource: clusterAddOns}}, wanted{&made, query{resource: addOnTemplates}},
		wanted{&set, query{resource: deploymentConfigs, labels: labelSetFor + "=" + name}},
	); err != nil {
		return AddOnResult{}, err
	}
	other := func(u unstructured.Unstructured) bool { return u.GetName() != name }
	registered, instances = slices.DeleteFunc(registered, other), slices.DeleteFunc(instances, other)
	made = slices.DeleteFunc(made, func(u unstructured.Unstructured) bool {
		owner, _, _ := unstructured.NestedString(u.Object, "spec", "addonName")
		return owner != name
	})
	made = append(made, slices.DeleteFunc(set, other)...)
	if len(registered)+len(instances)+len(made) == 0 {
		if err := needHub(ctx, o.Hub); err != nil {
			return AddOnResult{}, err
		}
		u := named(addonv1alpha1.GroupVersion.WithKind("ClusterManagementAddOn"), "", name)
		return AddOnResult{Items: []Change{{Object: u, Action: Unchanged}}}, nil
	}
	var out AddOnResult
	// The registration goes first, or the hub would bring instances back.
	if err := c.removeAll(ctx, slices.Concat(registered, instances), &out); err != nil {
		return out, err
	}
	if o.Wait && !o.reads() {
		for i := range instances {
			if err := c.awaitGone(ctx, &instances[i]); err != nil {
				return out, err
			}
		}
	}
	if !o.Wait && !o.reads() && len(instances) > 0 {
		if len(made) > 0 {
			c.warn("the templates and variables of %s stay until it is gone from the clusters: run this again then", name)
		}
		return out, nil
	}
	return out, c.removeAll(ctx, made, &out)
}

// removeAll deletes objects and notes it.
func (c *addOnChange) removeAll(ctx context.Context, items []unstructured.Unstructured, out *AddOnResult) error {
	for i := range items {
		if !c.reads() {
			if err := remove(ctx, c.Hub, &items[i]); err != nil {
				return explain("deleting "+describe(&items[i]), c.Hub, err)
			}
		}
		out.Items = append(out.Items, Change{Object: reference(&items[i]), Action: Deleted, Live: clean(&items[i])})
	}
	return nil
}
