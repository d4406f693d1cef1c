// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	workv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/work"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// maxSets bounds the replica sets with findings that are reported one by one.
const maxSets = 50

// gateReplicaSet switches the delivery of replica sets on a hub.
const gateReplicaSet = "ManifestWorkReplicaSet"

// replicas is the replica sets of a hub, and what they depend on.
type replicas struct {
	// placements are the names of those that exist, as NAMESPACE/NAME.
	placements map[string]bool
	// works are those of each set, by the value of their label.
	works map[string][]unstructured.Unstructured
}

// replicaSets checks every ManifestWorkReplicaSet, with three list requests at most. Those that are
// rolled out share one line.
func (c *checking) replicaSets(ctx context.Context) []Area {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	const name = "replica sets"
	sets, err := typed.List[workv1alpha1.ManifestWorkReplicaSet](ctx, c.o.Hub.Client, fleet.ReplicaSets, "", metav1.ListOptions{})
	if err != nil || len(sets) == 0 {
		return nil // a kind that is not served has its own finding
	}
	all, err := c.readReplicas(ctx)
	if err != nil {
		return []Area{{name, []Finding{unreadable(CodeSetPlacement, err)}}}
	}
	var out []Area
	well, left := 0, 0
	for i := range sets {
		if sets[i].DeletionTimestamp != nil {
			continue
		}
		switch found := c.replicaSet(all, &sets[i]); {
		case len(found) == 0:
			well++
		case len(out) == maxSets:
			left++
		default:
			out = append(out, Area{"replica set " + sets[i].Namespace + "/" + sets[i].Name, found})
		}
	}
	var lines []Finding
	if well > 0 {
		lines = good(CodeSetRollout, "%d of %d are rolled out or under way", well, len(sets))
	}
	if left > 0 {
		lines = append(lines, warning(CodeSetRollout, fleet.Many(left, "more replica set")+" have problems", "", ListAllWorks.On(c.o.Hub)))
	}
	if lines != nil {
		out = slices.Insert(out, 0, Area{name, lines})
	}
	return out
}

func (c *checking) readReplicas(ctx context.Context) (*replicas, error) {
	out := &replicas{placements: map[string]bool{}, works: map[string][]unstructured.Unstructured{}}
	var places, works []unstructured.Unstructured
	err := fleet.ListTogether(ctx, c.o.Hub, fleet.Into(&places, fleet.Query{Resource: fleet.Placements}),
		fleet.Into(&works, fleet.Query{Resource: fleet.ManifestWorks, Labels: workv1alpha1.LabelManifestWorkReplicaSet}))
	for i := range places {
		out.placements[places[i].GetNamespace()+"/"+places[i].GetName()] = true
	}
	for i := range works {
		key := works[i].GetLabels()[workv1alpha1.LabelManifestWorkReplicaSet]
		out.works[key] = append(out.works[key], works[i])
	}
	return out, err
}

// replicaSet returns what keeps one set from being on all clusters; no findings mean that nothing
// does.
func (c *checking) replicaSet(all *replicas, set *workv1alpha1.ManifestWorkReplicaSet) []Finding {
	var out []Finding
	for _, ref := range set.Spec.PlacementRefs {
		if !all.placements[set.Namespace+"/"+ref.Name] {
			out = append(out, failure(CodeSetPlacement, "there is no placement "+set.Namespace+"/"+ref.Name, "spec.placementRefs names it: no cluster gets the work",
				CreatePlacement.On(c.o.Hub, "name", ref.Name, "namespace", set.Namespace)))
		}
	}
	verified := apimeta.FindStatusCondition(set.Status.Conditions, workv1alpha1.ConditionPlacementVerified)
	switch {
	case verified == nil && apimeta.FindStatusCondition(set.Status.Conditions, workv1alpha1.ConditionManifestworkApplied) == nil:
		if c.run.Now().Sub(set.CreationTimestamp.Time) >= decisionPatience {
			out = append(out, warning(CodeSetRollout, "the hub has not processed it", "its feature gate "+gateReplicaSet+" is off, or its loops do not run",
				work.OpenGate.On(c.o.Hub, "gate", gateReplicaSet)))
		}
		return out
	case len(out) == 0 && verified != nil && verified.Status == metav1.ConditionFalse:
		key := set.Namespace + "/" + placementOf(set)
		f := warning(CodeSetPlacement, "no cluster is selected for it", fleet.OneLine(verified.Message), CheckPlacement.On(c.o.Hub, "placement", key))
		if verified.Reason == workv1alpha1.ReasonNotAsExpected {
			f.Severity, f.Title = SeverityError, "a rule of its rollout cannot be used"
			f.Fix = EditObject.On(c.o.Hub, "resource", "manifestworkreplicaset", "name", set.Name, "namespace", set.Namespace)
		}
		out = append(out, f)
	}
	if held := apimeta.FindStatusCondition(set.Status.Conditions, workv1alpha1.ConditionRemovalHeld); held != nil && held.Status == metav1.ConditionTrue {
		out = append(out, warning(CodeSetRollout, "works of clusters that left its placement are kept", fleet.OneLine(held.Message),
			ExplainPlacement.On(c.o.Hub, "placement", set.Namespace+"/"+placementOf(set))))
	}
	return append(append(out, c.rollout(set)...), c.replicaWorks(all, set)...)
}

// outOfTime finds how many clusters are out of time in what the hub says of a rollout, and
// rolloutEnds what it says of one that it does not continue.
var (
	outOfTime   = regexp.MustCompile(`, (\d+) are out of time`)
	rolloutEnds = regexp.MustCompile(`no further one is started$`)
)

// rollout reports a rollout that has stopped, or that leaves clusters behind.
func (c *checking) rollout(set *workv1alpha1.ManifestWorkReplicaSet) []Finding {
	is := apimeta.FindStatusCondition(set.Status.Conditions, workv1alpha1.ConditionPlacementRolledOut)
	if is == nil || is.Status == metav1.ConditionTrue || is.ObservedGeneration < set.Generation {
		return nil
	}
	late := outOfTime.FindStringSubmatch(is.Message)
	fix := work.ListOfPlacement.On(c.o.Hub, "placement", set.Namespace+"/"+placementOf(set))
	switch {
	case rolloutEnds.MatchString(is.Message):
		return []Finding{failure(CodeSetRollout, "its rollout has stopped", fleet.OneLine(is.Message), fix)}
	case late != nil && late[1] != "0":
		return []Finding{warning(CodeSetRollout, "clusters of its rollout are out of time: "+late[1], fleet.OneLine(is.Message), fix)}
	}
	return nil
}

// placementOf returns the first placement of a set.
func placementOf(set *workv1alpha1.ManifestWorkReplicaSet) string {
	if len(set.Spec.PlacementRefs) == 0 {
		return ""
	}
	return set.Spec.PlacementRefs[0].Name
}

// replicaWorks reports works of a set that are not applied because others own their objects, one
// line for each reason: the set restores its works, so the reason is to be removed in the set or
// beside it.
func (c *checking) replicaWorks(all *replicas, set *workv1alpha1.ManifestWorkReplicaSet) []Finding {
	var out []Finding
	at := map[string]int{}
	clusters := map[string][]string{}
	for i := range all.works[set.Namespace+"."+set.Name] {
		u := &all.works[set.Namespace+"."+set.Name][i]
		w, err := work.InfoOf(u)
		if err != nil || w.State != work.ApplyFailed {
			continue
		}
		full, err := typed.FromUnstructured[workv1.ManifestWork](u)
		if err != nil {
			continue
		}
		f, known := c.faultOf(&brokenWork{Info: &w, work: full})
		if !known || (f.Code != CodeWorkConflict && f.Code != CodeWorkRival) {
			continue
		}
		clusters[f.Code] = append(clusters[f.Code], w.Cluster)
		if _, told := at[f.Code]; told {
			continue
		}
		at[f.Code] = len(out)
		why := "another field manager owns fields of an object"
		if f.Code == CodeWorkRival {
			why = "an older work declares an object of it"
		}
		out = append(out, failure(CodeSetWorks, why, f.Cause, CheckWork.On(c.o.Hub, "work", w.Cluster+"/"+w.Name)))
	}
	for code, i := range at {
		names := clusters[code]
		slices.Sort(names)
		out[i].Title += fmt.Sprintf(" on %s: %s", fleet.Many(len(names), "cluster"), strings.TrimSpace(fleet.Listed(names)))
	}
	return out
}
