// SPDX-License-Identifier: Apache-2.0

package replicaset

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kubectl-ocm/kubectl-ocm/internal/rollout"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	workv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// maxRecheck bounds how long a rollout that waits for time is left alone.
const maxRecheck = 30 * time.Minute

// Placement is the state of a placement of the spec.
type Placement struct {
	// Name of the placement.
	Name string
	// Found is false when there is none.
	Found bool
	// Decided is false as long as it has no decision, which does not mean that it selects
	// nothing: a placement that selects no cluster has an empty decision.
	Decided bool
	// Invalid is why its decisions or its rollout strategy cannot be used.
	Invalid error
	// Strategy and Groups define the rollout.
	Strategy rollout.Strategy
	Groups   []rollout.Group
}

// usable reports whether the placement defines which clusters it selects.
func (p Placement) usable() bool { return p.Found && p.Decided && p.Invalid == nil }

// State is the input of a decision.
type State struct {
	// Set is the replica set.
	Set *workv1alpha1.ManifestWorkReplicaSet
	// Placements are those of the spec, in its order.
	Placements []Placement
	// Children are all ManifestWorks with the label of the replica set.
	Children []Child
	// Leaving are the selected clusters that get no new work, because they are being
	// deleted.
	Leaving map[string]bool
	// Now is the time of the decision.
	Now time.Time
}

// Decide plans the writes for a replica set. It is pure.
func Decide(s State) reconcile.Plan {
	set := s.Set.DeepCopy()
	plan := reconcile.Plan{Object: set, Order: reconcile.Parallel}
	if set.DeletionTimestamp != nil {
		for _, c := range s.Children {
			plan.Writes = appendRemoval(plan.Writes, c)
		}
		if len(s.Children) == 0 || set.Spec.CascadeDeletionPolicy != workv1alpha1.CascadeDeletionPolicyForeground {
			set.Finalizers = slices.DeleteFunc(set.Finalizers, func(f string) bool { return f == workv1alpha1.FinalizerManifestWorkReplicaSet })
		} else {
			// Their events wake the loop; those of works that no watch has delivered do
			// not.
			plan.RequeueAfter = maxRecheck
		}
		return plan
	}
	if !slices.Contains(set.Finalizers, workv1alpha1.FinalizerManifestWorkReplicaSet) {
		set.Finalizers = append(set.Finalizers, workv1alpha1.FinalizerManifestWorkReplicaSet)
	}
	if problems := validation.IsValidLabelValue(label(reconcile.KeyOf(set))); len(problems) > 0 {
		unnamed(set, strings.Join(problems, "; "), s.Now)
		plan.Events = events(s.Set, set)
		return plan
	}
	d := newDelivery(s)
	for i := range s.Placements {
		d.rollOut(i)
	}
	d.collect()
	d.holdRemovals(set)
	for _, cluster := range slices.Sorted(maps.Keys(d.write)) {
		child := d.children[cluster]
		plan.Writes = append(plan.Writes, reconcile.Apply{Object: work(set, cluster, child.Name, d.write[cluster]), LiveVersion: child.Version, Exact: true})
	}
	for _, c := range d.remove {
		plan.Writes = appendRemoval(plan.Writes, c)
	}
	report(set, d, s.Now)
	plan.Events = events(s.Set, set)
	plan.OnFailure = &metav1.Condition{
		Type: workv1alpha1.ConditionManifestworkApplied, Status: metav1.ConditionFalse, Reason: workv1alpha1.ReasonNotAsExpected,
		Message: "ManifestWorks cannot be written:", ObservedGeneration: set.Generation,
	}
	plan.RequeueAfter = min(d.recheck, maxRecheck)
	return plan
}

func appendRemoval(list []reconcile.Write, c Child) []reconcile.Write {
	if c.Deleting {
		return list
	}
	return append(list, reconcile.Remove{Target: reconcile.Target{Resource: worksResource, Namespace: c.Cluster, Name: c.Name, UID: c.UID}})
}

// delivery determines what to write and what to remove.
type delivery struct {
	State
	// children holds the child of each cluster that is kept.
	children map[string]Child
	// claims says which placement a cluster belongs to: the first that selects it, unless
	// its work is reserved for an earlier one.
	claims map[string]int
	plans  []rollout.Plan
	// write says for which placement a cluster's child is written.
	write   map[string]string
	remove  []Child
	recheck time.Duration
}

func newDelivery(s State) *delivery {
	d := &delivery{State: s, children: map[string]Child{}, claims: map[string]int{}, plans: make([]rollout.Plan, len(s.Placements)), write: map[string]string{}}
	sorted := slices.Clone(s.Children)
	slices.SortFunc(sorted, better)
	for _, c := range sorted {
		if _, taken := d.children[c.Cluster]; !taken {
			d.children[c.Cluster] = c
		}
	}
	for i, p := range s.Placements {
		if !p.usable() {
			continue
		}
		for _, g := range p.Groups {
			for _, cluster := range g.Clusters {
				if _, taken := d.claims[cluster]; !taken && !d.reserved(cluster, i) {
					d.claims[cluster] = i
				}
			}
		}
	}
	return d
}

// reserved reports whether the work on a cluster belongs to a placement before the i-th
// that is not usable just now: a temporary gap must not have the cluster rolled out by
// another strategy.
func (d *delivery) reserved(cluster string, i int) bool {
	child, ok := d.children[cluster]
	return ok && slices.ContainsFunc(d.Placements[:i], func(p Placement) bool { return p.Name == child.Placement && !p.usable() })
}

// better orders two children of one cluster; the first is kept: one that is not being
// deleted, has the template, and is older.
func better(a, b Child) int {
	return cmp.Or(boolean(a.Deleting)-boolean(b.Deleting), boolean(b.Current)-boolean(a.Current), a.Created.Compare(b.Created), strings.Compare(a.Name, b.Name))
}

func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}

// rollOut plans the rollout to the clusters of one placement.
func (d *delivery) rollOut(i int) {
	p := d.Placements[i]
	if !p.usable() {
		return
	}
	groups, clusters := d.claimed(i)
	plan := p.Strategy.Plan(groups, clusters, d.Now)
	d.plans[i] = plan
	for _, cluster := range plan.Start {
		if !d.Leaving[cluster] {
			d.write[cluster] = p.Name
		}
	}
	for _, cluster := range slices.Concat(plan.InFlight, plan.Done, plan.TimedOut) {
		if child := d.children[cluster]; !child.Deleting && !d.labelled(child, p.Name) {
			d.write[cluster] = p.Name
		}
	}
	if plan.Recheck > 0 && (d.recheck == 0 || plan.Recheck < d.recheck) {
		d.recheck = plan.Recheck
	}
}

// claimed returns the groups of one placement without the clusters that belong to
// another, and the rollout state of those that have a child.
func (d *delivery) claimed(i int) ([]rollout.Group, []rollout.Cluster) {
	var clusters []rollout.Cluster
	groups := make([]rollout.Group, 0, len(d.Placements[i].Groups))
	for _, g := range d.Placements[i].Groups {
		own := rollout.Group{Name: g.Name, Index: g.Index}
		for _, cluster := range g.Clusters {
			if d.claims[cluster] != i {
				continue
			}
			own.Clusters = append(own.Clusters, cluster)
			// A child that is being deleted is created again when it is gone.
			if child, ok := d.children[cluster]; ok && child.Deleting {
				clusters = append(clusters, rollout.Cluster{Name: cluster, Status: rollout.Progressing, Since: child.Changed})
			} else if ok {
				clusters = append(clusters, child.state())
			}
		}
		groups = append(groups, own)
	}
	return groups, clusters
}

// labelled reports whether the child has the labels that it should have, and no stale
// labels set by this loop.
func (d *delivery) labelled(c Child, placement string) bool {
	want := labels(d.Set, placement)
	for key, value := range want {
		if c.Labels[key] != value {
			return false
		}
	}
	return c.Given == len(want)
}

// collect finds the children that are no longer wanted. Those of a placement that is
// missing, undecided or unreadable are left alone, so that running workloads are not
// harmed.
func (d *delivery) collect() {
	unknown := map[string]bool{}
	for _, p := range d.Placements {
		if !p.usable() {
			unknown[p.Name] = true
		}
	}
	for _, c := range d.Children {
		_, claimed := d.claims[c.Cluster]
		if d.children[c.Cluster].UID != c.UID || (!claimed && !unknown[c.Placement]) {
			d.remove = append(d.remove, c)
		}
	}
	slices.SortFunc(d.remove, func(a, b Child) int {
		return cmp.Or(strings.Compare(a.Cluster, b.Cluster), strings.Compare(a.Name, b.Name))
	})
}

// labels returns the labels of a child: the replica set's, and two that mark it.
func labels(set *workv1alpha1.ManifestWorkReplicaSet, placement string) map[string]string {
	out := map[string]string{}
	maps.Copy(out, set.Labels)
	out[workv1alpha1.LabelManifestWorkReplicaSet] = label(reconcile.KeyOf(set))
	out[workv1alpha1.LabelPlacementName] = placement
	return out
}

// work returns the desired child; name is that of an existing child, or empty.
func work(set *workv1alpha1.ManifestWorkReplicaSet, cluster, name, placement string) *workv1.ManifestWork {
	name = cmp.Or(name, nameOf(reconcile.KeyOf(set)))
	return &workv1.ManifestWork{
		TypeMeta:   metav1.TypeMeta{APIVersion: workv1.GroupVersion.String(), Kind: "ManifestWork"},
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: name, Labels: labels(set, placement)},
		Spec:       set.Spec.ManifestWorkTemplate,
	}
}
