// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/internal/schedule"
	"github.com/kubectl-ocm/kubectl-ocm/internal/schedule/verdict"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
	clusterv1beta2 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta2"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/naming"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// ExplainOptions say which placement to explain, and on what fleet.
type ExplainOptions struct {
	fleet.Common
	// Hub is the hub.
	Hub *fleet.Cluster
	// Key is namespace and name of the placement.
	Key types.NamespacedName
	// Placement is decided instead of the stored one; nil means the stored one, which must
	// then exist.
	Placement *clusterv1beta1.Placement
	// With are clusters that are added to the fleet or replace those with their name; Without
	// are names of clusters that are left out of it.
	With    []*clusterv1.ManagedCluster
	Without []string
}

// fleetView is everything that a placement is decided on, as it was read.
type fleetView struct {
	hub       *fleet.Cluster
	scheduler *schedule.Scheduler
	placement *clusterv1beta1.Placement
	// frozen is true when an annotation keeps the hub from deciding.
	frozen bool
	// live are its current decisions.
	live []*clusterv1beta1.PlacementDecision
	// sets are the names of all sets, clusters the names of all clusters.
	sets, clusters []string
	// known are the sets themselves.
	known map[string]*clusterv1beta2.ManagedClusterSet
	// partial is true when the decisions of other namespaces could not be read.
	partial bool
}

// readFleet reads the fleet and loads it into a scheduler: at most six lists, page by page, and the
// placement.
func (o *ExplainOptions) readFleet(ctx context.Context) (*fleetView, error) {
	v := &fleetView{hub: o.Hub, scheduler: schedule.New(), placement: o.Placement, known: map[string]*clusterv1beta2.ManagedClusterSet{}}
	if v.placement == nil {
		u, err := readPlacement(ctx, o.Hub, o.Key)
		if err != nil {
			return nil, err
		}
		if v.placement, err = typed.FromUnstructured[clusterv1beta1.Placement](u); err != nil {
			return nil, err
		}
	}
	v.placement, v.frozen = schedule.Trial(v.placement)

	lists := map[string]*[]unstructured.Unstructured{}
	group, ctx2 := errgroup.WithContext(ctx)
	read := func(q fleet.Query) {
		into := &[]unstructured.Unstructured{}
		lists[q.Resource.Resource] = into
		group.Go(func() (err error) {
			*into, err = fleet.ListAll(ctx2, o.Hub, q)
			if apierrors.IsForbidden(err) && q.Resource == fleet.PlacementDecisions {
				v.partial = true
				q.Namespace = o.Key.Namespace
				*into, err = fleet.ListAll(ctx2, o.Hub, q)
			}
			return fleet.Explain("listing "+q.Resource.Resource, o.Hub, err)
		})
	}
	read(fleet.Query{Resource: fleet.ManagedClusters})
	read(fleet.Query{Resource: fleet.ManagedClusterSets})
	read(fleet.Query{Resource: fleet.SetBindings, Namespace: o.Key.Namespace})
	read(fleet.Query{Resource: fleet.PlacementDecisions})
	if schedule.ReadsScores(v.placement) {
		read(fleet.Query{Resource: fleet.PlacementScores})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	if len(*lists[fleet.ManagedClusterSets.Resource]) == 0 {
		if err := fleet.NeedHub(ctx, o.Hub); err != nil {
			return nil, err
		}
	}
	return v, o.fill(v, lists)
}

// fill gives the scheduler what was read, with the options' changes to the fleet.
func (o *ExplainOptions) fill(v *fleetView, lists map[string]*[]unstructured.Unstructured) error {
	s := v.scheduler
	all := map[string]*clusterv1.ManagedCluster{}
	if err := cmp.Or(
		TakeUp(lists[fleet.ManagedClusterSets.Resource], func(set *clusterv1beta2.ManagedClusterSet) {
			v.sets, v.known[set.Name] = append(v.sets, set.Name), set
			s.SetClusterSet(set)
		}),
		TakeUp(lists[fleet.SetBindings.Resource], s.SetBinding),
		TakeUp(lists[fleet.PlacementDecisions.Resource], func(d *clusterv1beta1.PlacementDecision) {
			if d.Namespace == o.Key.Namespace && d.Labels[clusterv1beta1.LabelPlacement] == o.Key.Name {
				v.live = append(v.live, d)
			}
			s.SetDecision(d)
		}),
		TakeUp(lists[fleet.PlacementScores.Resource], s.SetScore),
		TakeUp(lists[fleet.ManagedClusters.Resource], func(c *clusterv1.ManagedCluster) { all[c.Name] = c }),
	); err != nil {
		return err
	}
	for _, c := range o.With {
		if c = c.DeepCopy(); c.Labels[clusterv1.LabelClusterSet] == "" {
			// As the hub's admission does.
			metav1.SetMetaDataLabel(&c.ObjectMeta, clusterv1.LabelClusterSet, clusterv1beta2.DefaultClusterSet)
		}
		all[c.Name] = c
	}
	for _, name := range o.Without {
		if all[name] == nil {
			return naming.NoCluster(name, o.Hub)
		}
		delete(all, name)
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		v.clusters = append(v.clusters, name)
		s.SetCluster(all[name])
	}
	return nil
}

// TakeUp decodes the objects of a list and passes each to set.
func TakeUp[T any](items *[]unstructured.Unstructured, set func(*T)) error {
	if items == nil {
		return nil
	}
	for i := range *items {
		object, err := typed.FromUnstructured[T](&(*items)[i])
		if err != nil {
			return err
		}
		set(object)
	}
	return nil
}

// explain decides a placement on the fleet and returns why.
func (v *fleetView) explain(r *fleet.Run, p *clusterv1beta1.Placement) schedule.Report {
	v.scheduler.SetPlacement(p)
	for {
		report := v.scheduler.Explain(KeyOf(p), r.Now())
		if report.Result.Skip != schedule.SkipMore {
			return report
		}
	}
}

// Explain returns, for every cluster of the fleet, why a placement selects it or not. It
// decides here with the library that the hub uses, and compares the result with the stored
// decisions. It only reads.
func Explain(ctx context.Context, o ExplainOptions) (verdict.Explanation, []fleet.Note, error) {
	ctx, cancel, r := o.Begin(ctx)
	defer cancel()
	v, err := o.readFleet(ctx)
	if err != nil {
		return verdict.Explanation{}, nil, err
	}
	report := v.explain(r, v.placement)
	out := verdict.Of(v.placement, &report, v.live)
	out.Frozen = v.frozen
	if v.partial {
		out.Warnings = append(out.Warnings, "you may not list placementdecisions of other namespaces: Balance counts those of "+o.Key.Namespace+" only")
	}
	return out, v.hints(r, &report), nil
}

// Only returns the only one of several names, or ""; the set of all clusters does not count
// when there is another.
func Only(names []string) string {
	left := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == clusterv1beta2.GlobalClusterSet })
	switch {
	case len(left) == 1:
		return left[0]
	case len(left) == 0 && len(names) == 1:
		return names[0]
	}
	return ""
}

// maxHints bounds how many taints are tried as tolerated.
const maxHints = 3

// hints returns what would make more clusters be selected.
func (v *fleetView) hints(r *fleet.Run, report *schedule.Report) []fleet.Note {
	namespace := v.placement.Namespace
	bound, out := false, []fleet.Note{}
	for i := range report.Sets {
		set := &report.Sets[i]
		named := slices.Contains(v.placement.Spec.ClusterSets, set.Name)
		bound = bound || set.Bound
		switch {
		case set.Problem != "":
			out = append(out, fleet.Note{Text: fmt.Sprintf("cluster set %s: %s", set.Name, set.Problem)})
		case !set.Exists:
			out = append(out, fleet.Note{Text: "there is no cluster set " + set.Name, Fix: CreateSet.On(v.hub, "set", set.Name)})
		case !set.Bound && named:
			out = append(out, fleet.Note{Text: fmt.Sprintf("cluster set %s is named but not bound", set.Name),
				Fix: BindSet.On(v.hub, "set", set.Name, "namespace", namespace)})
		case set.Eligible && set.Members == 0:
			out = append(out, fleet.Note{Text: fmt.Sprintf("cluster set %s has no clusters", set.Name), Fix: Fill(v.known[set.Name], v.clusters, v.hub)})
		}
	}
	if !bound && len(v.placement.Spec.ClusterSets) == 0 {
		out = append(out, fleet.Note{Text: "no cluster set is bound to namespace " + namespace,
			Fix: BindOneOf.On(v.hub, "set", Only(v.sets), "namespace", namespace, "sets", fleet.Listed(v.sets))})
	}
	return append(out, v.tolerationHints(r, report)...)
}

// tolerationHints returns a hint for each taint whose toleration would have more clusters selected;
// each is decided with it.
func (v *fleetView) tolerationHints(r *fleet.Run, report *schedule.Report) []fleet.Note {
	type trial struct {
		tolerations []clusterv1beta1.Toleration
		clusters    []string
	}
	trials := map[string]*trial{}
	for i := range report.Clusters {
		c := &report.Clusters[i]
		if c.Stage != schedule.StageTaint {
			continue
		}
		var key []string
		t := &trial{}
		for _, taint := range c.Taints {
			if !taint.Tolerated {
				t.tolerations = append(t.tolerations, clusterv1beta1.Toleration{Key: taint.Key, Operator: clusterv1beta1.TolerationOpExists})
				key = append(key, taint.Key)
			}
		}
		name := strings.Join(key, " and ")
		if trials[name] == nil {
			trials[name] = t
		}
		trials[name].clusters = append(trials[name].clusters, c.Name)
	}
	var out []fleet.Note
	for _, name := range slices.Sorted(maps.Keys(trials)) {
		if len(out) == maxHints {
			break
		}
		p := v.placement.DeepCopy()
		p.Spec.Tolerations = append(p.Spec.Tolerations, trials[name].tolerations...)
		then := v.explain(r, p).Clusters
		if i := slices.IndexFunc(then, func(c schedule.ClusterReport) bool {
			return c.Selected && slices.Contains(trials[name].clusters, c.Name)
		}); i >= 0 {
			out = append(out, fleet.Note{Text: fmt.Sprintf("%s would be %s if tolerated: add toleration for %s", then[i].Name, Ordinal(then[i].Rank), name)})
		}
	}
	v.scheduler.SetPlacement(v.placement)
	return out
}

// Ordinal formats a rank: 1st, 2nd, 3rd, 4th.
func Ordinal(n int) string {
	suffix := "th"
	if n%100 < 11 || n%100 > 13 {
		suffix = map[int]string{1: "st", 2: "nd", 3: "rd"}[n%10]
	}
	return fmt.Sprintf("%d%s", n, cmp.Or(suffix, "th"))
}
