// SPDX-License-Identifier: Apache-2.0

package fleet

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
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/await"
)

// WaitGone is the state of a work that is not there any more.
const WaitGone = "deleted"

// waitFor maps the words of WaitWorks to the condition that must be True.
var waitFor = map[string]string{
	"applied": workv1.ConditionApplied, "available": workv1.ConditionAvailable, "complete": workv1.ConditionComplete,
}

// WaitStates are the states that WaitWorks knows.
func WaitStates() []string { return []string{"applied", "available", "complete", WaitGone} }

// WaitWorks waits until a work is in a state on clusters, for its spec as it is
// now. Works that a set of the name has made count too, each by its own name.
// Without targets, those clusters count that have one.
func WaitWorks(ctx context.Context, o WorkOptions, state string) (WorkResult, error) {
	ctx, cancel, r := o.begin(ctx)
	defer cancel()
	if err := checkWorkName(o.Name); err != nil {
		return WorkResult{}, err
	}
	if !slices.Contains(WaitStates(), state) {
		return WorkResult{}, usage(fmt.Sprintf("a work cannot be waited for to be %q", state), "", "use one of "+strings.Join(WaitStates(), ", "))
	}
	all, err := o.awaited(ctx)
	if err != nil {
		return WorkResult{}, err
	}
	if len(all) == 0 && state != WaitGone {
		return WorkResult{}, NoWork(o.Name, "on any cluster", o.Hub)
	}
	clusters := make([]string, len(all))
	for i, a := range all {
		clusters[i] = a.cluster
	}
	return eachOf(clusters, func(i int) (Change, error) {
		u := named(workv1.GroupVersion.WithKind("ManifestWork"), all[i].cluster, cmp.Or(all[i].name, o.Name))
		return Change{Object: u, Action: Unchanged}, o.awaitState(ctx, r, all[i], state)
	})
}

// awaited is a work that is waited for on a cluster: that of a name, or the one
// that a set is still to make there, by its label.
type awaited struct{ cluster, name, set string }

func (a awaited) String() string {
	if a.set != "" {
		return "the work of replicaset " + strings.Replace(a.set, ".", "/", 1) + " on " + a.cluster
	}
	return "manifestwork/" + a.name + " on " + a.cluster
}

func (a awaited) query() await.Query {
	q := await.Query{Resource: manifestWorks, Namespace: a.cluster, Name: a.name}
	if a.set != "" {
		q.Labels = workv1alpha1.LabelManifestWorkReplicaSet + "=" + a.set
	}
	return q
}

// awaited returns the works of the name and those of sets of the name, on the
// clusters that are meant; without targets, on those that have one. With a
// placement, a set is the one in its namespace.
func (o *WorkOptions) awaited(ctx context.Context) ([]awaited, error) {
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

// setToCome is the label of the set that sends works of the name to the placement
// that was named, "" when there is none.
func (o *WorkOptions) setToCome(ctx context.Context) (string, error) {
	live, err := o.liveSet(ctx)
	if _, placement, _ := strings.Cut(o.Targets.Placement, "/"); live == nil || err != nil || !slices.Contains(placementsOf(live), placement) {
		return "", err
	}
	return setLabel(live), nil
}

// ofThisName lists the works of the name and those of sets of the name.
func (o *WorkOptions) ofThisName(ctx context.Context) ([]*unstructured.Unstructured, error) {
	selector := workv1alpha1.LabelManifestWorkReplicaSet
	if namespace, _, ok := strings.Cut(o.Targets.Placement, "/"); ok {
		selector += "=" + namespace + "." + o.Name
	}
	queries := []query{{resource: manifestWorks, fields: "metadata.name=" + o.Name}}
	if _, err := labels.Parse(selector); err == nil { // a set whose name is too long for a label has no works
		queries = append(queries, query{resource: manifestWorks, labels: selector})
	}
	var out []*unstructured.Unstructured
	for _, q := range queries {
		items, err := listAll(ctx, o.Hub, q)
		if err != nil {
			return nil, explain("listing manifestworks", o.Hub, err)
		}
		for i := range items {
			_, set, _ := strings.Cut(items[i].GetLabels()[workv1alpha1.LabelManifestWorkReplicaSet], ".")
			// A work of the set that has the set's own name is in both lists.
			if q.labels == "" || set == o.Name && items[i].GetName() != o.Name {
				out = append(out, &items[i])
			}
		}
	}
	if len(out) == 0 {
		return nil, needHub(ctx, o.Hub)
	}
	return out, nil
}

func (o *WorkOptions) awaitState(ctx context.Context, r *run, a awaited, state string) error {
	var last *unstructured.Unstructured
	p := r.place(a.cluster)
	q := a.query()
	q.Client, q.Clock = o.Hub.Client, r.common.Clock
	err := await.Objects(ctx, q, func(items []*unstructured.Unstructured) (bool, error) {
		last = nil
		if len(items) == 0 {
			if state == WaitGone {
				return true, nil
			}
			p.see(workSight(nil, ""))
			return false, nil
		}
		last = items[0]
		if state != WaitGone && current(last, waitFor[state]) {
			return true, nil
		}
		p.see(sightOf(last, state))
		return false, nil
	})
	return r.timedOut(ctx, p.end(err, state), fmt.Sprintf("%s to be %s", a, state), func(ctx context.Context) *blocker {
		return o.notYet(ctx, a.cluster, last, state)
	})
}

// sightOf is what is seen of a work that is not in a state.
func sightOf(u *unstructured.Unstructured, state string) string {
	if state == WaitGone && u.GetDeletionTimestamp() == nil {
		return "nobody has deleted it"
	}
	return workSight(u, waitFor[state])
}

// notYet tells why a work, nil for none, is not in a state.
func (o *WorkOptions) notYet(ctx context.Context, cluster string, last *unstructured.Unstructured, state string) *blocker {
	switch {
	case last == nil:
		return &blocker{cause: "there is no such work on " + cluster, fix: "kubectl ocm work list" + o.Hub.flag()}
	case last.GetDeletionTimestamp() != nil:
		return o.stuck(ctx, last)
	case state == WaitGone:
		return &blocker{cause: "nobody has deleted it", fix: fmt.Sprintf("kubectl ocm work delete %s %s%s", o.Name, whereToDelete(last), o.Hub.flag())}
	case !observed(last, workv1.ConditionApplied):
		return &blocker{cause: "the agent of " + cluster + " has not answered", fix: "kubectl ocm cluster list" + o.Hub.flag()}
	}
	if b := workBlocker(last); b != nil {
		return b
	}
	if !observed(last, waitFor[state]) {
		return &blocker{cause: "no condition rule of the work makes " + waitFor[state], fix: "add conditionRules to spec.manifestConfigs of the work"}
	}
	return &blocker{cause: waitFor[state] + " is not True"}
}

// whereToDelete is the flag with which work delete finds a work, or its set.
func whereToDelete(u *unstructured.Unstructured) string {
	marks := u.GetLabels()
	if namespace, _, ok := strings.Cut(marks[workv1alpha1.LabelManifestWorkReplicaSet], "."); ok {
		return "--placement " + namespace + "/" + cmp.Or(marks[workv1alpha1.LabelPlacementName], "NAME")
	}
	return "-c " + u.GetNamespace()
}
