// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-ocm/kubectl-ocm/controllers/placement/decisions"
	"github.com/kubectl-ocm/kubectl-ocm/internal/schedule"
	clusterv1beta1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1beta1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

const (
	kindPlacement = "Placement"
	kindDecision  = "PlacementDecision"
)

var decisionsResource = clusterv1beta1.GroupVersion.WithResource("placementdecisions")

// State is what a decision is made on.
type State struct {
	// Placement with its kind set; it is not changed.
	Placement *clusterv1beta1.Placement
	// Result is what the placement selects. It must not be a skipped one.
	Result schedule.Result
	// Scores returns the scores behind the result, computed only when they are reported;
	// nil where they are not known.
	Scores func() []schedule.Scored
	// Decisions are the objects with the label of the placement and those with a name
	// that it generates.
	Decisions []*clusterv1beta1.PlacementDecision
	// Now is the time.
	Now time.Time
}

// Decide plans the writes for the result: decisions first, then the status.
func Decide(s State) reconcile.Plan {
	object := s.Placement.DeepCopy()
	plan := reconcile.Plan{Object: object, Order: reconcile.Strict, OnFailure: &metav1.Condition{
		Type: clusterv1beta1.ConditionSatisfied, Status: metav1.ConditionFalse, Reason: clusterv1beta1.ReasonNotAllDecisionsScheduled,
		Message: "The decisions could not be written and will be tried again:", ObservedGeneration: s.Result.Generation,
	}}
	var objects [][]string
	if len(s.Result.Groups) > 0 { // else its name can mark no decision
		p := decisions.Make(wanted(s), s.Decisions)
		objects = p.Objects
		if p.Independent {
			plan.Order = reconcile.Chains
		}
		for _, w := range p.Writes {
			plan.Writes = append(plan.Writes, write(s.Placement, w))
		}
		plan.Events = events(s, p.Writes)
	}
	report(object, s, objects)
	if at := s.Result.LookAgain; !at.IsZero() {
		plan.RequeueAfter = max(at.Sub(s.Now), time.Millisecond)
	}
	return plan
}

// wanted converts the result to the terms of package decisions.
func wanted(s State) decisions.Wanted {
	yes := true
	return decisions.Wanted{
		Owner: metav1.OwnerReference{
			APIVersion: clusterv1beta1.GroupVersion.String(), Kind: kindPlacement, Name: s.Placement.Name, UID: s.Placement.UID,
			Controller: &yes, BlockOwnerDeletion: &yes,
		},
		Ordered: s.Placement.Spec.SortBy == clusterv1beta1.SortByScore,
		Keep:    s.Result.Kept || s.Result.Delayed,
		Groups:  s.Result.Groups,
	}
}

// write converts a write of decisions to one of a plan.
func write(p *clusterv1beta1.Placement, w decisions.Write) reconcile.Write {
	at := reconcile.Target{Resource: decisionsResource, Namespace: p.Namespace, Name: w.Name, UID: w.UID, Version: w.Version}
	switch w.Kind {
	case decisions.Create:
		d := decision(p.Namespace, w.Name)
		d.Labels, d.OwnerReferences = w.Labels, w.Owners
		return reconcile.Create{Object: d}
	case decisions.Status:
		list := w.Decisions
		if list == nil {
			list = []clusterv1beta1.ClusterDecision{}
		}
		return reconcile.Patch{Target: at, Body: map[string]any{"status": map[string]any{"decisions": list}}, Subresource: "status"}
	case decisions.Metadata:
		meta := map[string]any{}
		if w.Labels != nil {
			meta["labels"] = w.Labels
		}
		if w.Owners != nil {
			meta["ownerReferences"] = w.Owners
		}
		return reconcile.Patch{Target: at, Body: map[string]any{"metadata": meta}}
	case decisions.Delete:
	}
	return reconcile.Remove{Target: at}
}

func decision(namespace, name string) *clusterv1beta1.PlacementDecision {
	return &clusterv1beta1.PlacementDecision{
		TypeMeta:   metav1.TypeMeta{APIVersion: clusterv1beta1.GroupVersion.String(), Kind: kindDecision},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
	}
}

// report fills in the status.
func report(p *clusterv1beta1.Placement, s State, objects [][]string) {
	p.Status.NumberOfSelectedClusters = int32(s.Result.Selected) //nolint:gosec // as many as there are clusters
	p.Status.DecisionGroups = nil
	for i, g := range s.Result.Groups {
		p.Status.DecisionGroups = append(p.Status.DecisionGroups, clusterv1beta1.DecisionGroupStatus{
			DecisionGroupIndex: int32(i), DecisionGroupName: g.Name, Decisions: objects[i], ClusterCount: int32(len(g.Clusters)), //nolint:gosec // as above
		})
	}
	reconcile.SetCondition(&p.Status.Conditions, s.Result.Misconfigured, s.Now)
	reconcile.SetCondition(&p.Status.Conditions, s.Result.Satisfied, s.Now)
	if s.Result.ScoreUpdate {
		at := metav1.NewTime(s.Now.Truncate(time.Second))
		p.Status.LastScoreUpdateTime = &at
	}
}
