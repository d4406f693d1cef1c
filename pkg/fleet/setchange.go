// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/validation"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1beta2 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta2"
)

// SetOptions say what to do with a cluster set.
type SetOptions struct {
	Common
	// Hub is the hub.
	Hub *Cluster
	// Name of the set.
	Name string
	// Selector makes a set whose members are selected by their labels; nil makes
	// one whose members are put into it. Only of CreateSet.
	Selector *string
	// Targets are the clusters to put into the set or to take out of it.
	Targets Targets
	// Move takes clusters out of the set they are in.
	Move bool
	// Namespace is where the set may be used or no longer be used.
	Namespace string
	// Unbind deletes the bindings of a set that is deleted.
	Unbind bool
}

// SetResult is what happened to the objects of a set.
type SetResult struct {
	Items []Change `json:"items"`
}

// CheckSetName tells why a cluster set cannot have this name. The name is the
// value of its members' label.
func CheckSetName(name string) error {
	problems := validation.IsDNS1123Subdomain(name)
	if len(problems) == 0 {
		problems = validation.IsValidLabelValue(name)
	}
	if len(problems) > 0 {
		return usage(fmt.Sprintf("%q cannot be the name of a cluster set", name), problems[0], "for example prod")
	}
	return nil
}

// CreateSet makes a cluster set. One that is there with the same selector is
// unchanged; another selector is refused, because it would change the members.
func CreateSet(ctx context.Context, o SetOptions) (SetResult, error) {
	ctx, cancel, r := o.begin(ctx)
	defer cancel()
	if err := CheckSetName(o.Name); err != nil {
		return SetResult{}, err
	}
	if err := needHub(ctx, o.Hub); err != nil {
		return SetResult{}, err
	}
	u := named(clusterv1beta2.GroupVersion.WithKind("ManagedClusterSet"), "", o.Name)
	selector := map[string]any{"selectorType": string(clusterv1beta2.SelectorTypeExclusiveClusterSetLabel)}
	if o.Selector != nil {
		parsed, err := labelSelector(*o.Selector)
		if err != nil {
			return SetResult{}, usage(fmt.Sprintf("wrong label selector %q", *o.Selector), oneLine(err.Error()), "for example --selector env=prod")
		}
		raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(parsed)
		if err != nil {
			return SetResult{}, fmt.Errorf("encoding the selector: %w", err)
		}
		selector = map[string]any{"selectorType": string(clusterv1beta2.SelectorTypeLabelSelector), "labelSelector": raw}
	}
	u.Object["spec"] = map[string]any{"clusterSelector": selector}
	live, err := r.live(ctx, o.Hub, u)
	if err != nil {
		return SetResult{}, explain("reading "+describe(u), o.Hub, err)
	}
	if live != nil && !sameMembers(live, u) {
		return SetResult{}, refused(fmt.Sprintf("the cluster set %q is there with another selector", o.Name), "another selector would change which clusters its users get",
			"choose another name, or change it on purpose: kubectl edit managedclusterset "+o.Name+o.Hub.flag())
	}
	change, err := r.applyOne(ctx, o.Hub, u)
	if err != nil {
		return SetResult{}, explain("applying "+describe(u), o.Hub, err)
	}
	return SetResult{Items: []Change{change}}, nil
}

// labelSelector reads a selector as kubectl writes it. The object has no word for
// "!=", which means the same as "notin".
func labelSelector(text string) (*metav1.LabelSelector, error) {
	parsed, err := labels.Parse(text)
	if err != nil {
		return nil, err
	}
	rest := labels.NewSelector()
	var not []metav1.LabelSelectorRequirement
	requirements, _ := parsed.Requirements()
	for _, r := range requirements {
		if r.Operator() == selection.NotEquals {
			not = append(not, metav1.LabelSelectorRequirement{Key: r.Key(), Operator: metav1.LabelSelectorOpNotIn, Values: r.ValuesUnsorted()})
			continue
		}
		rest = rest.Add(r)
	}
	out, err := metav1.ParseToLabelSelector(rest.String())
	if err != nil {
		return nil, err
	}
	out.MatchExpressions = append(out.MatchExpressions, not...)
	return out, nil
}

// sameMembers tells that two sets select the same clusters by their wording.
func sameMembers(a, b *unstructured.Unstructured) bool {
	x, errA := membersOf(a)
	y, errB := membersOf(b)
	return errA == nil && errB == nil && selectorType(a) == selectorType(b) && x == y
}

// JoinSet puts clusters into a set. A cluster that is in another set but the
// default one is refused without Move: it would be lost to the users of that
// set. Clusters are independent; the error is of kind Partial when only some
// failed.
func JoinSet(ctx context.Context, o SetOptions) (WorkResult, error) {
	ctx, cancel, r := o.begin(ctx)
	defer cancel()
	members, names, err := o.chosen(ctx)
	if err != nil {
		return WorkResult{}, err
	}
	return each(names, func(name string) (Change, error) {
		in := members[name]
		if in != o.Name && in != "" && in != clusterv1beta2.DefaultClusterSet && !o.Move {
			return Change{}, refused(fmt.Sprintf("cluster %q is in the set %q", name, in), "the users of that set would lose it", "add --move to take it out of there")
		}
		return o.label(ctx, r, name, o.Name)
	})
}

// LeaveSet takes clusters out of a set: they go to the default one. A cluster
// that is not in the set is unchanged, and left out of the result unless it was
// named.
func LeaveSet(ctx context.Context, o SetOptions) (WorkResult, error) {
	ctx, cancel, r := o.begin(ctx)
	defer cancel()
	if o.Name == clusterv1beta2.DefaultClusterSet {
		return WorkResult{}, usage("clusters cannot be taken out of the set default", "a cluster is in it when it is in no other set of its kind", "kubectl ocm clusterset add <another set> -c <cluster>"+o.Hub.flag())
	}
	members, names, err := o.chosen(ctx)
	if err != nil {
		return WorkResult{}, err
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		return members[name] != o.Name && !slices.Contains(o.Targets.Clusters, name)
	})
	return each(names, func(name string) (Change, error) {
		if members[name] != o.Name {
			u := named(clusterv1.GroupVersion.WithKind("ManagedCluster"), "", name)
			return Change{Object: u, Action: Unchanged}, nil
		}
		return o.label(ctx, r, name, clusterv1beta2.DefaultClusterSet)
	})
}

// chosen are the sets of all clusters, and the clusters that are meant.
func (o *SetOptions) chosen(ctx context.Context) (members map[string]string, names []string, err error) {
	if members, err = o.members(ctx); err != nil {
		return nil, nil, err
	}
	names, err = o.Targets.Resolve(ctx, o.Hub)
	return members, names, err
}

// members are the sets of all clusters by their label, once it is clear that
// clusters can be put into this set.
func (o *SetOptions) members(ctx context.Context) (map[string]string, error) {
	set, err := readSet(ctx, o.Hub, o.Name)
	if err != nil {
		return nil, err
	}
	if !exclusive(set) {
		text, err := membersOf(set)
		if err != nil {
			text = "its selector, which cannot be used: " + oneLine(err.Error())
		}
		return nil, usage(fmt.Sprintf("the members of the cluster set %q are selected by their labels", o.Name), "it takes the clusters that match "+text,
			"kubectl label managedcluster <cluster> <key>=<value>"+o.Hub.flag())
	}
	items, err := listAll(ctx, o.Hub, query{resource: managedClusters})
	if err != nil {
		return nil, explain("listing managedclusters", o.Hub, err)
	}
	out := make(map[string]string, len(items))
	for i := range items {
		out[items[i].GetName()] = items[i].GetLabels()[clusterv1.LabelClusterSet]
	}
	return out, nil
}

func (o *SetOptions) label(ctx context.Context, r *run, cluster, set string) (Change, error) {
	u := named(clusterv1.GroupVersion.WithKind("ManagedCluster"), "", cluster)
	u.SetLabels(map[string]string{clusterv1.LabelClusterSet: set})
	change, err := r.merge(ctx, o.Hub, u)
	return change, explain("labelling managedcluster "+cluster, o.Hub, err)
}

// BindSet lets the placements of a namespace use a set.
func BindSet(ctx context.Context, o SetOptions) (SetResult, error) {
	ctx, cancel, r := o.begin(ctx)
	defer cancel()
	if _, err := readSet(ctx, o.Hub, o.Name); err != nil {
		return SetResult{}, err
	}
	u := o.binding()
	u.Object["spec"] = map[string]any{"clusterSet": o.Name}
	change, err := r.applyOne(ctx, o.Hub, u)
	if apierrors.IsNotFound(err) && !isNoKind(err) {
		return SetResult{}, &Error{Message: fmt.Sprintf("there is no namespace %q on %s", o.Namespace, o.Hub), Fix: "kubectl create namespace " + ShellWord(o.Namespace) + o.Hub.flag(), Err: err}
	}
	if err != nil {
		return SetResult{}, explain("applying "+describe(u), o.Hub, err)
	}
	return SetResult{Items: []Change{change}}, nil
}

func (o *SetOptions) binding() *unstructured.Unstructured {
	return named(clusterv1beta2.GroupVersion.WithKind("ManagedClusterSetBinding"), o.Namespace, o.Name)
}

// PlacementsIn names the placements of a namespace, which use its bindings.
func PlacementsIn(ctx context.Context, hub *Cluster, namespace string) ([]string, error) {
	items, err := listAll(ctx, hub, query{resource: placements, namespace: namespace})
	if err != nil {
		return nil, explain("listing placements", hub, err)
	}
	var out []string
	for i := range items {
		out = append(out, items[i].GetName())
	}
	slices.Sort(out)
	return out, nil
}

// UnbindSet takes a set away from the placements of a namespace.
func UnbindSet(ctx context.Context, o SetOptions) (SetResult, error) {
	ctx, cancel, r := o.begin(ctx)
	defer cancel()
	if err := needHub(ctx, o.Hub); err != nil {
		return SetResult{}, err
	}
	change, err := o.drop(ctx, r, o.binding())
	if err != nil {
		return SetResult{}, err
	}
	return SetResult{Items: []Change{change}}, nil
}

// DeleteSet deletes a set that nobody uses: no cluster is in it by its label,
// and no namespace is bound to it, unless Unbind deletes the bindings too.
func DeleteSet(ctx context.Context, o SetOptions) (SetResult, error) {
	ctx, cancel, r := o.begin(ctx)
	defer cancel()
	if o.Name == clusterv1beta2.DefaultClusterSet || o.Name == clusterv1beta2.GlobalClusterSet {
		return SetResult{}, refused(fmt.Sprintf("the cluster set %q belongs to the hub", o.Name), "the hub would make it again", "")
	}
	sets, err := ListSets(ctx, SetListOptions{Common: o.Common, Hub: o.Hub})
	if err != nil {
		return SetResult{}, err
	}
	i := slices.IndexFunc(sets, func(s SetInfo) bool { return s.Name == o.Name })
	u := named(clusterv1beta2.GroupVersion.WithKind("ManagedClusterSet"), "", o.Name)
	if i < 0 {
		return SetResult{Items: []Change{{Object: u, Action: Unchanged}}}, nil
	}
	set := sets[i]
	switch {
	case set.SelectorType == string(clusterv1beta2.SelectorTypeExclusiveClusterSetLabel) && len(set.Members) > 0:
		return SetResult{}, refused(fmt.Sprintf("the cluster set %q is not empty", o.Name), "its clusters would be in a set that is not there: "+listed(set.Members),
			"kubectl ocm clusterset drop "+o.Name+" --all"+o.Hub.flag())
	case len(set.Bound) > 0 && !o.Unbind:
		return SetResult{}, refused(fmt.Sprintf("the cluster set %q is in use", o.Name), "the placements of these namespaces would lose its clusters: "+listed(set.Bound),
			"add --unbind to delete these bindings too")
	}
	var out SetResult
	for _, namespace := range set.Bound {
		bound := o
		bound.Namespace = namespace
		change, err := o.drop(ctx, r, bound.binding())
		if err != nil {
			return out, err
		}
		out.Items = append(out.Items, change)
	}
	change, err := o.drop(ctx, r, u)
	if err != nil {
		return out, err
	}
	out.Items = append(out.Items, change)
	return out, nil
}

// drop deletes an object that may be gone already.
func (o *SetOptions) drop(ctx context.Context, r *run, u *unstructured.Unstructured) (Change, error) {
	live, err := r.live(ctx, o.Hub, u)
	if err != nil {
		return Change{}, explain("reading "+describe(u), o.Hub, err)
	}
	if live == nil {
		return Change{Object: u, Action: Unchanged}, nil
	}
	change := Change{Object: u, Action: Deleted, Live: clean(live)}
	if o.reads() {
		return change, nil
	}
	return change, explain("deleting "+describe(u), o.Hub, remove(ctx, o.Hub, live))
}
