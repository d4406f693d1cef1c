// SPDX-License-Identifier: Apache-2.0

package work

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	workv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/naming"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/placement"
)

// waitGone is the state of a work that no longer exists.
const waitGone = "deleted"

// waitFor maps the states of Wait to the condition that must be True.
var waitFor = map[string]string{
	"applied": workv1.ConditionApplied, "available": workv1.ConditionAvailable, "complete": workv1.ConditionComplete,
}

// WaitStates returns the states that Wait supports.
func WaitStates() []string { return []string{"applied", "available", "complete", waitGone} }

// Wait waits until a work is in a state on clusters, for its current spec. Works that a set of
// this name has created count too, each by its own name. Without targets, it waits on the
// clusters that have one.
func Wait(ctx context.Context, o Options, state string) (fleet.ClusterChanges, error) {
	ctx, cancel, r := o.Begin(ctx)
	defer cancel()
	if err := o.check(); err != nil {
		return fleet.ClusterChanges{}, err
	}
	if !slices.Contains(WaitStates(), state) {
		return fleet.ClusterChanges{}, fleet.Misuse(fmt.Sprintf("cannot wait for a work to be %q", state), "",
			fleet.Advice("use one of "+strings.Join(WaitStates(), ", ")))
	}
	all, err := o.awaited(ctx)
	if err != nil {
		return fleet.ClusterChanges{}, err
	}
	if len(all) == 0 && state != waitGone {
		return fleet.ClusterChanges{}, naming.NoWork(o.Name, "on any cluster", o.Hub)
	}
	clusters := make([]string, len(all))
	for i, a := range all {
		clusters[i] = a.cluster
	}
	return fleet.EachOf(clusters, func(i int) (fleet.Change, error) {
		u := named(all[i].cluster, cmp.Or(all[i].name, o.Name))
		return fleet.Change{Object: u, Action: fleet.Unchanged}, o.awaitState(ctx, r, all[i], state)
	})
}

// awaited is a work to wait for on a cluster: by its name, or by the label of the set that is
// still to create it there.
type awaited struct{ cluster, name, set string }

func (a awaited) String() string {
	if a.set != "" {
		return "the work of replicaset " + strings.Replace(a.set, ".", "/", 1) + " on " + a.cluster
	}
	return "manifestwork/" + a.name + " on " + a.cluster
}

func (a awaited) query() await.Query {
	q := await.Query{Resource: fleet.ManifestWorks, Namespace: a.cluster, Name: a.name}
	if a.set != "" {
		q.Labels = workv1alpha1.LabelManifestWorkReplicaSet + "=" + a.set
	}
	return q
}

// awaited returns the works of the name and those of sets of the name, on the target clusters;
// without targets, on those that have one. With a placement, only a set in its namespace
// counts.
func (o *Options) awaited(ctx context.Context) ([]awaited, error) {
	var clusters []string
	var err error
	if !o.Targets.Empty() {
		if clusters, err = o.Targets.Resolve(ctx, o.Hub); err != nil {
			return nil, err
		}
	}
	set, err := o.setToCome(ctx)
	if err != nil {
		return nil, err
	}
	found, err := o.ofThisName(ctx)
	if err != nil {
		return nil, err
	}
	var out []awaited
	there := map[string]bool{}
	for _, u := range found {
		if clusters == nil || slices.Contains(clusters, u.GetNamespace()) {
			out = append(out, awaited{cluster: u.GetNamespace(), name: u.GetName()})
			there[u.GetNamespace()] = there[u.GetNamespace()] || set == "" || u.GetLabels()[workv1alpha1.LabelManifestWorkReplicaSet] == set
		}
	}
	for _, cluster := range clusters {
		switch {
		case there[cluster]:
		case set != "":
			out = append(out, awaited{cluster: cluster, set: set})
		default:
			out = append(out, awaited{cluster: cluster, name: o.Name})
		}
	}
	slices.SortFunc(out, func(a, b awaited) int { return cmp.Or(cmp.Compare(a.cluster, b.cluster), cmp.Compare(a.name, b.name)) })
	return out, nil
}

// setToCome returns the label of the set that sends works of the name to the given placement;
// "" when there is none.
func (o *Options) setToCome(ctx context.Context) (string, error) {
	live, err := o.liveSet(ctx)
	if _, name, _ := strings.Cut(o.Targets.Placement, "/"); live == nil || err != nil || !slices.Contains(placement.PlacementsOf(live), name) {
		return "", err
	}
	return setLabel(live), nil
}

// ofThisName lists the works of the name and those of sets of the name.
func (o *Options) ofThisName(ctx context.Context) ([]unstructured.Unstructured, error) {
	selector := workv1alpha1.LabelManifestWorkReplicaSet
	if namespace, _, ok := strings.Cut(o.Targets.Placement, "/"); ok {
		selector += "=" + namespace + "." + o.Name
	}
	queries := []fleet.Query{{Resource: fleet.ManifestWorks, Fields: "metadata.name=" + o.Name}}
	if _, err := labels.Parse(selector); err == nil { // a set whose name is too long for a label has no works
		queries = append(queries, fleet.Query{Resource: fleet.ManifestWorks, Labels: selector})
	}
	var out []unstructured.Unstructured
	for _, q := range queries {
		items, err := fleet.ListAll(ctx, o.Hub, q)
		if err != nil {
			return nil, fleet.Explain("listing manifestworks", o.Hub, err)
		}
		out = append(out, slices.DeleteFunc(items, func(u unstructured.Unstructured) bool {
			_, set, _ := strings.Cut(u.GetLabels()[workv1alpha1.LabelManifestWorkReplicaSet], ".")
			// A work of the set with the set's own name is in both lists.
			return q.Labels != "" && (set != o.Name || u.GetName() == o.Name)
		})...)
	}
	if len(out) == 0 {
		return nil, fleet.NeedHub(ctx, o.Hub)
	}
	return out, nil
}

func (o *Options) awaitState(ctx context.Context, r *fleet.Run, a awaited, state string) error {
	var last *unstructured.Unstructured
	p := r.Place(a.cluster)
	q := a.query()
	q.Client, q.Clock = o.Hub.Client, r.Given.Clock
	err := await.Objects(ctx, q, func(items []*unstructured.Unstructured) (bool, error) {
		last = nil
		if len(items) == 0 {
			if state == waitGone {
				return true, nil
			}
			p.See(describeWork(nil, ""))
			return false, nil
		}
		last = items[0]
		if state != waitGone && isCurrent(last, waitFor[state]) {
			return true, nil
		}
		p.See(sightOf(last, state))
		return false, nil
	})
	return r.TimedOut(ctx, p.End(err, state), fmt.Sprintf("%s to be %s", a, state), func(ctx context.Context) *fleet.Blocker {
		return o.stateBlocker(ctx, a.cluster, last, state)
	})
}

// sightOf describes a work that is not in a state.
func sightOf(u *unstructured.Unstructured, state string) string {
	if state == waitGone && u.GetDeletionTimestamp() == nil {
		return "it has not been deleted"
	}
	return describeWork(u, waitFor[state])
}

// stateBlocker returns why a work, which may be nil, is not in a state.
func (o *Options) stateBlocker(ctx context.Context, cluster string, last *unstructured.Unstructured, state string) *fleet.Blocker {
	switch {
	case last == nil:
		return &fleet.Blocker{Cause: "there is no such work on " + cluster, Fix: naming.ListWorks.On(o.Hub)}
	case last.GetDeletionTimestamp() != nil:
		return (&Departures{Hub: o.Hub}).Blocker(ctx, last)
	case state == waitGone:
		return &fleet.Blocker{Cause: "it has not been deleted", Fix: o.deletion(last)}
	case !isObserved(last, workv1.ConditionApplied):
		return &fleet.Blocker{Cause: "the agent of " + cluster + " has not answered", Fix: naming.ListClusters.On(o.Hub)}
	}
	if b := blockerOf(last); b != nil {
		return b
	}
	if !isObserved(last, waitFor[state]) {
		return &fleet.Blocker{Cause: "no condition rule of the work makes " + waitFor[state],
			Fix: fleet.Advice("add conditionRules to spec.manifestConfigs of the work")}
	}
	return &fleet.Blocker{Cause: waitFor[state] + " is not True"}
}

// deletion is the fix that deletes a work, or the set that it belongs to.
func (o *Options) deletion(u *unstructured.Unstructured) fleet.Fix {
	marks := u.GetLabels()
	if namespace, _, ok := strings.Cut(marks[workv1alpha1.LabelManifestWorkReplicaSet], "."); ok {
		return DeleteSetOf.On(o.Hub, "work", o.Name, "placement", namespace+"/"+cmp.Or(marks[workv1alpha1.LabelPlacementName], "NAME"))
	}
	return DeleteWork.On(o.Hub, "work", o.Name, "cluster", u.GetNamespace())
}
