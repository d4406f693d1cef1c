// SPDX-License-Identifier: Apache-2.0

package clusterset

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1beta2 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta2"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/cluster"
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
func CheckName(name string) error {
	problems := validation.IsDNS1123Subdomain(name)
	if len(problems) == 0 {
		problems = validation.IsValidLabelValue(name)
	}
	if len(problems) > 0 {
		return fleet.Misuse(fmt.Sprintf("%q cannot be the name of a cluster set", name), problems[0], fleet.Advice("for example prod"))
	}
	return nil
}

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
	change, err := write.One(ctx, r, o.Hub, u)
	if err != nil {
		return Result{}, fleet.Explain("applying "+fleet.Describe(u), o.Hub, err)
	}
	return Result{Items: []fleet.Change{change}}, nil
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

// chosenClusters returns the sets of all clusters, and the clusters to act on.
func (o *Options) chosenClusters(ctx context.Context) (members map[string]string, names []string, err error) {
	if members, err = o.members(ctx); err != nil {
		return nil, nil, err
	}
	names, err = o.Targets.Resolve(ctx, o.Hub)
	return members, names, err
}

// members returns the sets of all clusters by their label, after checking that clusters can be
// added to this set.
func (o *Options) members(ctx context.Context) (map[string]string, error) {
	set, err := cluster.ReadSet(ctx, o.Hub, o.Name)
	if err != nil {
		return nil, err
	}
	if !cluster.Exclusive(set) {
		text, err := cluster.MembersOf(set)
		if err != nil {
			text = "its selector, which cannot be used: " + fleet.OneLine(err.Error())
		}
		return nil, fleet.Misuse(fmt.Sprintf("the members of the cluster set %q are selected by their labels", o.Name), "it takes the clusters that match "+text,
			LabelClusters.On(o.Hub))
	}
	items, err := fleet.ListAll(ctx, o.Hub, fleet.Query{Resource: fleet.ManagedClusters})
	if err != nil {
		return nil, fleet.Explain("listing managedclusters", o.Hub, err)
	}
	out := make(map[string]string, len(items))
	for i := range items {
		out[items[i].GetName()] = items[i].GetLabels()[clusterv1.LabelClusterSet]
	}
	return out, nil
}

func (o *Options) label(ctx context.Context, r *fleet.Run, cluster, set string) (fleet.Change, error) {
	u := fleet.Named(clusterv1.GroupVersion.WithKind("ManagedCluster"), "", cluster)
	u.SetLabels(map[string]string{clusterv1.LabelClusterSet: set})
	change, err := write.Merge(ctx, r, o.Hub, u)
	return change, fleet.Explain("labelling managedcluster "+cluster, o.Hub, err)
}
