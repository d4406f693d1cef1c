// SPDX-License-Identifier: Apache-2.0

package addon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubectl-ocm/kubectl-ocm/internal/schedule"
	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/cluster"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/naming"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/write"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// Result is what happened to the objects of add-ons.
type Result struct {
	Items []fleet.Change `json:"items"`
}

// LostByPlacement returns the add-ons, as "NAME on CLUSTER", that the hub will remove once
// EnableByPlacement has added the placement: those that were enabled by hand on clusters that
// no placement selects. A placement without a decision selects nothing; AwaitDecided waits for
// it.
func LostByPlacement(ctx context.Context, o Options) ([]string, error) {
	ctx, cancel, r := o.Begin(ctx)
	defer cancel()
	c := &change{Options: o, run: r}
	addOns, err := c.readAddOns(ctx)
	if err != nil {
		return nil, err
	}
	items, err := fleet.ListAll(ctx, o.Hub, fleet.Query{Resource: fleet.ClusterAddOns})
	if err != nil {
		return nil, fleet.Explain("listing managedclusteraddons", o.Hub, err)
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

// EnableByPlacement adds the placement to the install strategies of add-ons: the hub keeps
// them on the clusters that it selects, now and later. Placements already in a strategy stay.
// Configurations apply to this placement.
func EnableByPlacement(ctx context.Context, o Options) (Result, error) {
	ctx, cancel, r := o.Begin(ctx)
	defer cancel()
	c := &change{Options: o, run: r}
	addOns, err := c.readAddOns(ctx)
	if err != nil {
		return Result{}, err
	}
	if err := c.applyConfigs(ctx); err != nil {
		return Result{}, err
	}
	out := Result{Items: c.beside}
	for _, a := range addOns {
		var change fleet.Change
		u := fleet.Named(addonv1alpha1.GroupVersion.WithKind("ClusterManagementAddOn"), "", a.Name)
		err := write.Again(func() (err error) {
			if a == nil {
				a, err = readAddOn(ctx, o.Hub, u.GetName())
			}
			switch {
			case err != nil:
				return err
			case a == nil:
				return naming.NoAddOn(u.GetName(), o.Hub)
			}
			change, err = c.addPlacement(ctx, a, u.DeepCopy())
			a = nil // it is read again
			return err
		})
		if err != nil {
			return out, fleet.Explain("changing "+fleet.Describe(u), o.Hub, write.Busy(u, err))
		}
		out.Items = append(out.Items, change)
	}
	return out, nil
}

// addPlacement writes the placement into u, the object to apply for the add-on.
func (c *change) addPlacement(ctx context.Context, a *addonv1alpha1.ClusterManagementAddOn, u *unstructured.Unstructured) (fleet.Change, error) {
	wanted, err := c.underPlacement(ctx, a)
	if err != nil {
		return fleet.Change{}, err
	}
	strategy, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&wanted.Spec.InstallStrategy)
	if err != nil {
		return fleet.Change{}, fmt.Errorf("encoding the install strategy of %s: %w", a.Name, err)
	}
	if !c.Reads() {
		u.SetResourceVersion(a.ResourceVersion)
	}
	u.Object["spec"] = map[string]any{"installStrategy": strategy}
	return write.Merge(ctx, c.run, c.Hub, u)
}

// readAddOns reads the add-ons of the options, in their order.
func (c *change) readAddOns(ctx context.Context) ([]*addonv1alpha1.ClusterManagementAddOn, error) {
	var out []*addonv1alpha1.ClusterManagementAddOn
	for _, name := range c.Names {
		a, err := readAddOn(ctx, c.Hub, name)
		if err != nil {
			return nil, err
		}
		if a == nil {
			if err := fleet.NeedHub(ctx, c.Hub); err != nil {
				return nil, err
			}
			return nil, naming.NoAddOn(name, c.Hub)
		}
		out = append(out, a)
	}
	return out, nil
}

// readAddOn reads one add-on; nil when there is none.
func readAddOn(ctx context.Context, hub *fleet.Cluster, name string) (*addonv1alpha1.ClusterManagementAddOn, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	a, err := typed.Get[addonv1alpha1.ClusterManagementAddOn](ctx, hub.Client, fleet.ManagementAddOns, "", name)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return a, fleet.Explain("reading clustermanagementaddon "+name, hub, err)
}

// underPlacement returns the add-on with the placement in its install strategy.
func (c *change) underPlacement(ctx context.Context, a *addonv1alpha1.ClusterManagementAddOn) (*addonv1alpha1.ClusterManagementAddOn, error) {
	namespace, name, err := c.Targets.PlacementName()
	if err != nil {
		return nil, err
	}
	if !ManagedByHub(a) {
		return nil, fleet.Refuse(fmt.Sprintf("the add-on %q installs itself", a.Name), "its annotation "+addonv1alpha1.AnnotationLifecycle+
			" says so, and the hub ignores placements for it", NameClusters.With())
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
	s.Placements[at].Configs = replaced(s.Placements[at].Configs, c.Configs)
	return out, nil
}

// Delete deletes an add-on from the hub: its registration, its instances on every cluster, and
// the templates that were made for it. With Wait it returns when everything is gone; the
// templates are deleted last, because hooks are rendered from them, and without Wait they
// stay.
func Delete(ctx context.Context, o Options) (Result, error) {
	ctx, cancel, r := o.Begin(ctx)
	defer cancel()
	c := &change{Options: o, run: r}
	name := o.Names[0]
	var registered, instances, made, set []unstructured.Unstructured
	if err := fleet.ListTogether(ctx, o.Hub,
		fleet.Into(&registered, fleet.Query{Resource: fleet.ManagementAddOns, Fields: "metadata.name=" + name}),
		fleet.Into(&instances, fleet.Query{Resource: fleet.ClusterAddOns, Fields: "metadata.name=" + name}),
		fleet.Into(&made, fleet.Query{Resource: fleet.AddOnTemplates}),
		fleet.Into(&set, fleet.Query{Resource: deploymentConfigs, Labels: labelSetFor + "=" + name, Fields: "metadata.name=" + name}),
	); err != nil {
		return Result{}, err
	}
	made = slices.DeleteFunc(made, func(u unstructured.Unstructured) bool {
		owner, _, _ := unstructured.NestedString(u.Object, "spec", "addonName")
		return owner != name
	})
	made = append(made, set...)
	if len(registered)+len(instances)+len(made) == 0 {
		if err := fleet.NeedHub(ctx, o.Hub); err != nil {
			return Result{}, err
		}
		u := fleet.Named(addonv1alpha1.GroupVersion.WithKind("ClusterManagementAddOn"), "", name)
		return Result{Items: []fleet.Change{{Object: u, Action: fleet.Unchanged}}}, nil
	}
	var out Result
	// The registration is deleted first, or the hub would create instances again.
	if err := c.removeAll(ctx, slices.Concat(registered, instances), &out); err != nil {
		return out, err
	}
	if o.Wait && !o.Reads() {
		for i := range instances {
			if err := c.awaitGone(ctx, &instances[i]); err != nil {
				return out, err
			}
		}
	}
	if !o.Wait && !o.Reads() && len(instances) > 0 {
		if len(made) > 0 {
			c.warn("the templates and variables of %s stay until it is gone from the clusters: run this again then", name)
		}
		return out, nil
	}
	return out, c.removeAll(ctx, made, &out)
}

// removeAll deletes objects and adds the changes to out.
func (c *change) removeAll(ctx context.Context, items []unstructured.Unstructured, out *Result) error {
	for i := range items {
		if !c.Reads() {
			if err := fleet.Remove(ctx, c.Hub, &items[i]); err != nil {
				return fleet.Explain("deleting "+fleet.Describe(&items[i]), c.Hub, err)
			}
		}
		out.Items = append(out.Items, fleet.Change{Object: fleet.Reference(&items[i]), Action: fleet.Deleted, Live: write.Clean(&items[i])})
	}
	return nil
}

// decisionWait bounds the wait for the first decision of a placement. A running hub decides
// within a second.
const decisionWait = 30 * time.Second

// AwaitDecided waits until the hub has decided for the first time on the placement that
// EnableByPlacement would use, and on the other placements of the add-ons: until then the
// result of LostByPlacement is not known. It waits for half a minute at most; the error names
// the placement.
func AwaitDecided(ctx context.Context, o Options) error {
	ctx, cancel, r := o.Begin(ctx)
	defer cancel()
	c := &change{Options: o, run: r}
	addOns, err := c.readAddOns(ctx)
	if err != nil {
		return err
	}
	seen := map[addonv1alpha1.PlacementRef]bool{}
	for _, a := range addOns {
		wanted, err := c.underPlacement(ctx, a)
		if err != nil {
			return err
		}
		for _, p := range wanted.Spec.InstallStrategy.Placements {
			if seen[p.PlacementRef] {
				continue
			}
			seen[p.PlacementRef] = true
			if err := c.awaitDecision(ctx, p.PlacementRef); err != nil {
				return err
			}
		}
	}
	return nil
}

// awaitDecision waits for the first decision of a placement. It does not wait for a placement
// that does not exist or that the hub is kept from deciding.
func (c *change) awaitDecision(ctx context.Context, ref addonv1alpha1.PlacementRef) error {
	if ok, err := c.isDecided(ctx, ref); ok || err != nil {
		return err
	}
	bound := min(decisionWait, c.run.Given.Timeout)
	short, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	text := ref.Namespace + "/" + ref.Name
	c.run.Step("first decision of placement " + text)
	err := await.Objects(short, await.Query{Client: c.Hub.Client, Resource: fleet.Placements, Namespace: ref.Namespace, Name: ref.Name, Clock: c.run.Given.Clock},
		func(items []*unstructured.Unstructured) (bool, error) {
			return len(items) == 0 || apimeta.FindStatusCondition(fleet.ConditionsOf(items[0]), clusterv1beta1.ConditionSatisfied) != nil, nil
		})
	var expired *await.Expired
	if !errors.As(err, &expired) {
		if err == nil {
			c.run.Done("")
		}
		return err
	}
	// Another controller than the hub may decide, and write nothing but decisions.
	last, cancelLast := context.WithTimeout(context.WithoutCancel(ctx), fleet.DiagnosisTimeout)
	defer cancelLast()
	if ok, err := c.isDecided(last, ref); ok || err != nil {
		return err
	}
	return c.run.Fail(&fleet.Error{Kind: fleet.Timeout, Message: fmt.Sprintf("placement %s is not decided yet, after %s", text, bound),
		Cause: "so it is not known which clusters would lose the add-on; a running hub decides within a second",
		Fix:   CheckPlacementOrConfirm.On(c.Hub, "placement", text), Err: err})
}

// isDecided reports whether it is known what a placement selects.
func (c *change) isDecided(ctx context.Context, ref addonv1alpha1.PlacementRef) (bool, error) {
	p, err := c.readPlacement(ctx, ref.Namespace, ref.Name)
	switch {
	case apierrors.IsNotFound(err):
		return true, nil
	case err != nil:
		return false, err
	}
	if _, frozen := schedule.Trial(p); frozen || apimeta.FindStatusCondition(p.Status.Conditions, clusterv1beta1.ConditionSatisfied) != nil {
		return true, nil
	}
	selected := map[string]bool{}
	err = cluster.AddSelected(ctx, c.Hub, ref.Namespace, ref.Name, selected)
	return len(selected) > 0, err
}

// readPlacement reads a placement.
func (c *change) readPlacement(ctx context.Context, namespace, name string) (*clusterv1beta1.Placement, error) {
	text := namespace + "/" + name
	p, err := typed.Get[clusterv1beta1.Placement](ctx, c.Hub.Client, fleet.Placements, namespace, name)
	if apierrors.IsNotFound(err) && !fleet.IsNoKind(err) {
		return nil, naming.NoPlacement(text, c.Hub)
	}
	return p, fleet.Explain("reading placement "+text, c.Hub, err)
}
