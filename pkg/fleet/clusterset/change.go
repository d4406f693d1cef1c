// SPDX-License-Identifier: Apache-2.0

package clusterset

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1beta2 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta2"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/cluster"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/naming"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/write"
)

// Options say what to do with a cluster set.
type Options struct {
	fleet.Common
	// Hub is the hub.
	Hub *fleet.Cluster
	// Name of the set.
	Name string
	// Selector makes a set that selects its members by their labels; nil makes one whose
	// members are added to it. Only Create uses it.
	Selector *string
	// Targets are the clusters to add to the set or to remove from it.
	Targets cluster.Targets
	// Move takes clusters out of the set they are in.
	Move bool
	// Namespace is the one to bind or unbind.
	Namespace string
	// Unbind deletes the bindings of a set together with the set.
	Unbind bool
}

// Result is what happened to the objects of a set.
type Result struct {
	Items []fleet.Change `json:"items"`
}

// CheckName returns why a cluster set cannot have this name. The name is the value of its
// members' label.
func CheckName(name string) error { return naming.CheckValue(name, "a cluster set", "prod") }

// Create creates a cluster set. An existing one with the same selector is unchanged; another
// selector is refused, because it would change the members.
func Create(ctx context.Context, o Options) (Result, error) {
	ctx, cancel, r := o.Begin(ctx)
	defer cancel()
	if err := CheckName(o.Name); err != nil {
		return Result{}, err
	}
	if err := fleet.NeedHub(ctx, o.Hub); err != nil {
		return Result{}, err
	}
	u := fleet.Named(clusterv1beta2.GroupVersion.WithKind("ManagedClusterSet"), "", o.Name)
	selector := map[string]any{"selectorType": string(clusterv1beta2.SelectorTypeExclusiveClusterSetLabel)}
	if o.Selector != nil {
		parsed, err := cluster.Selector(*o.Selector)
		if err != nil {
			return Result{}, fleet.Misuse(fmt.Sprintf("wrong label selector %q", *o.Selector), fleet.OneLine(err.Error()), ExampleSelector.With())
		}
		raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(parsed)
		if err != nil {
			return Result{}, fmt.Errorf("encoding the selector: %w", err)
		}
		selector = map[string]any{"selectorType": string(clusterv1beta2.SelectorTypeLabelSelector), "labelSelector": raw}
	}
	u.Object["spec"] = map[string]any{"clusterSelector": selector}
	live, err := write.Live(ctx, o.Hub, u)
	if err != nil {
		return Result{}, fleet.Explain("reading "+fleet.Describe(u), o.Hub, err)
	}
	if live != nil && !sameMembers(live, u) {
		return Result{}, fleet.Refuse(fmt.Sprintf("the cluster set %q already exists with another selector", o.Name),
			"another selector would change which clusters its users get",
			EditSet.On(o.Hub, "set", o.Name))
	}
	items, err := write.All(ctx, r, o.Hub, []*unstructured.Unstructured{u})
	return Result{Items: items}, err
}

// sameMembers reports whether two sets have equal selectors.
func sameMembers(a, b *unstructured.Unstructured) bool {
	x, errA := cluster.MembersOf(a)
	y, errB := cluster.MembersOf(b)
	return errA == nil && errB == nil && cluster.SelectorType(a) == cluster.SelectorType(b) && x == y
}

// Join adds clusters to a set. A cluster that is in another set than the default one is
// refused without Move: the users of that set would lose it. Clusters are independent; the
// error is of kind Partial when only some failed.
func Join(ctx context.Context, o Options) (fleet.ClusterChanges, error) {
	ctx, cancel, r := o.Begin(ctx)
	defer cancel()
	members, names, err := o.chosenClusters(ctx)
	if err != nil {
		return fleet.ClusterChanges{}, err
	}
	return fleet.Each(names, func(name string) (fleet.Change, error) {
		in := members[name]
		if in != o.Name && in != "" && in != clusterv1beta2.DefaultClusterSet && !o.Move {
			return fleet.Change{}, fleet.Refuse(fmt.Sprintf("cluster %q is in the set %q", name, in), "the users of that set would lose it", Move.With())
		}
		return o.label(ctx, r, name, o.Name)
	})
}

// Leave removes clusters from a set: they return to the default one. A cluster that is not in
// the set is unchanged, and left out of the result unless it was given by name.
func Leave(ctx context.Context, o Options) (fleet.ClusterChanges, error) {
	ctx, cancel, r := o.Begin(ctx)
	defer cancel()
	if o.Name == clusterv1beta2.DefaultClusterSet {
		return fleet.ClusterChanges{}, fleet.Misuse("clusters cannot be removed from the set default",
			"a cluster is in it when it is in no other set of its kind", AddElsewhere.On(o.Hub))
	}
	members, names, err := o.chosenClusters(ctx)
	if err != nil {
		return fleet.ClusterChanges{}, err
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		return members[name] != o.Name && !slices.Contains(o.Targets.Clusters, name)
	})
	return fleet.Each(names, func(name string) (fleet.Change, error) {
		if members[name] != o.Name {
			u := fleet.Named(clusterv1.GroupVersion.WithKind("ManagedCluster"), "", name)
			return fleet.Change{Object: u, Action: fleet.Unchanged}, nil
		}
		return o.label(ctx, r, name, clusterv1beta2.DefaultClusterSet)
	})
}

// chosenClusters returns the sets of all clusters by their label, and the clusters to act on,
// after checking that clusters can be added to this set.
func (o *Options) chosenClusters(ctx context.Context) (members map[string]string, names []string, err error) {
	set, err := cluster.ReadSet(ctx, o.Hub, o.Name)
	if err != nil {
		return nil, nil, err
	}
	if !cluster.Exclusive(set) {
		text, err := cluster.MembersOf(set)
		if err != nil {
			text = "its selector, which cannot be used: " + fleet.OneLine(err.Error())
		}
		return nil, nil, fleet.Misuse(fmt.Sprintf("the members of the cluster set %q are selected by their labels", o.Name), "it takes the clusters that match "+text,
			LabelClusters.On(o.Hub))
	}
	items, err := fleet.ListAll(ctx, o.Hub, fleet.Query{Resource: fleet.ManagedClusters})
	if err != nil {
		return nil, nil, fleet.Explain("listing managedclusters", o.Hub, err)
	}
	members = make(map[string]string, len(items))
	for i := range items {
		members[items[i].GetName()] = items[i].GetLabels()[clusterv1.LabelClusterSet]
	}
	names, err = o.Targets.Resolve(ctx, o.Hub)
	return members, names, err
}

func (o *Options) label(ctx context.Context, r *fleet.Run, cluster, set string) (fleet.Change, error) {
	u := fleet.Named(clusterv1.GroupVersion.WithKind("ManagedCluster"), "", cluster)
	u.SetLabels(map[string]string{clusterv1.LabelClusterSet: set})
	change, err := write.Merge(ctx, r, o.Hub, u)
	return change, fleet.Explain("labelling managedcluster "+cluster, o.Hub, err)
}

// Delete deletes a set that is not in use: no cluster is in it by its label, and no namespace
// is bound to it, unless Unbind deletes the bindings too.
func Delete(ctx context.Context, o Options) (Result, error) {
	ctx, cancel, _ := o.Begin(ctx)
	defer cancel()
	if o.Name == clusterv1beta2.DefaultClusterSet || o.Name == clusterv1beta2.GlobalClusterSet {
		return Result{}, fleet.Refuse(fmt.Sprintf("the cluster set %q belongs to the hub", o.Name), "the hub would recreate it", nil)
	}
	sets, err := List(ctx, ListOptions{Common: o.Common, Hub: o.Hub})
	if err != nil {
		return Result{}, err
	}
	i := slices.IndexFunc(sets, func(s Info) bool { return s.Name == o.Name })
	u := fleet.Named(clusterv1beta2.GroupVersion.WithKind("ManagedClusterSet"), "", o.Name)
	if i < 0 {
		return Result{Items: []fleet.Change{{Object: u, Action: fleet.Unchanged}}}, nil
	}
	set := sets[i]
	switch {
	case set.SelectorType == string(clusterv1beta2.SelectorTypeExclusiveClusterSetLabel) && len(set.Members) > 0:
		return Result{}, fleet.Refuse(fmt.Sprintf("the cluster set %q is not empty", o.Name), "its clusters would be in a set that does not exist: "+
			fleet.Listed(set.Members),
			DropAll.On(o.Hub, "set", o.Name))
	case len(set.Bound) > 0 && !o.Unbind:
		return Result{}, fleet.Refuse(fmt.Sprintf("the cluster set %q is in use", o.Name), "the placements of these namespaces would lose its clusters: "+
			fleet.Listed(set.Bound),
			DropBindings.With())
	}
	var objects []*unstructured.Unstructured
	for _, namespace := range set.Bound {
		objects = append(objects, binding(namespace, o.Name))
	}
	return o.deleteAll(ctx, append(objects, u)...)
}

// deleteAll deletes objects that may be gone already.
func (o *Options) deleteAll(ctx context.Context, objects ...*unstructured.Unstructured) (out Result, err error) {
	for _, u := range objects {
		live, err := write.Live(ctx, o.Hub, u)
		if err != nil {
			return out, fleet.Explain("reading "+fleet.Describe(u), o.Hub, err)
		}
		change := fleet.Change{Object: u, Action: fleet.Unchanged}
		if live != nil {
			change.Action, change.Live = fleet.Deleted, write.Clean(live)
			if !o.Reads() {
				err = fleet.Remove(ctx, o.Hub, live)
			}
		}
		if err != nil {
			return out, fleet.Explain("deleting "+fleet.Describe(u), o.Hub, err)
		}
		out.Items = append(out.Items, change)
	}
	return out, nil
}

// Bind allows the placements of a namespace to use a set.
func Bind(ctx context.Context, o Options) (Result, error) {
	ctx, cancel, r := o.Begin(ctx)
	defer cancel()
	if _, err := cluster.ReadSet(ctx, o.Hub, o.Name); err != nil {
		return Result{}, err
	}
	u := binding(o.Namespace, o.Name)
	u.Object["spec"] = map[string]any{"clusterSet": o.Name}
	items, err := write.All(ctx, r, o.Hub, []*unstructured.Unstructured{u})
	if apierrors.IsNotFound(err) && !fleet.IsNoKind(err) {
		return Result{}, &fleet.Error{Message: fmt.Sprintf("there is no namespace %q on %s", o.Namespace, o.Hub),
			Fix: fleet.CreateNamespace.On(o.Hub, "namespace", o.Namespace), Err: err}
	}
	return Result{Items: items}, err
}

func binding(namespace, set string) *unstructured.Unstructured {
	return fleet.Named(clusterv1beta2.GroupVersion.WithKind("ManagedClusterSetBinding"), namespace, set)
}

// PlacementsIn returns the names of the placements of a namespace, which use its bindings.
func PlacementsIn(ctx context.Context, hub *fleet.Cluster, namespace string) ([]string, error) {
	items, err := fleet.ListAll(ctx, hub, fleet.Query{Resource: fleet.Placements, Namespace: namespace})
	if err != nil {
		return nil, fleet.Explain("listing placements", hub, err)
	}
	var out []string
	for i := range items {
		out = append(out, items[i].GetName())
	}
	slices.Sort(out)
	return out, nil
}

// Unbind stops the placements of a namespace from using a set.
func Unbind(ctx context.Context, o Options) (Result, error) {
	ctx, cancel, _ := o.Begin(ctx)
	defer cancel()
	if err := fleet.NeedHub(ctx, o.Hub); err != nil {
		return Result{}, err
	}
	return o.deleteAll(ctx, binding(o.Namespace, o.Name))
}
