// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/reconcile"
)

// maxPriority is the highest cleanup priority; values outside 0 to 100 count as 0.
const maxPriority = 100

// Item is an object in the namespace of the cluster.
type Item struct {
	// Name and UID of the object.
	Name string
	UID  types.UID
	// Priority is the unparsed value of its annotation cleanup-priority.
	Priority string
	// Deleting is true when it waits for its finalizers.
	Deleting bool
}

// Group is all objects of one resource.
type Group struct {
	// Resource of the objects.
	Resource schema.GroupVersionResource
	// Items are the objects.
	Items []Item
	// Watched is true when each change of them wakes the loop; other resources are polled.
	Watched bool
}

// State holds everything a decision needs.
type State struct {
	// Cluster is nil when it is gone.
	Cluster *clusterv1.ManagedCluster
	// Name of the cluster and its namespace.
	Name string
	// Clean is the gate ResourceCleanup.
	Clean bool
	// Groups are the resources to remove, in order, up to the first one with objects left.
	Groups []Group
	// Fault is why a resource could not be listed; nothing after it is removed, and the
	// cluster stays.
	Fault error
	// Behind is true when the namespace holds objects the caches do not show yet; nothing is
	// removed until they do, and the cluster stays.
	Behind bool
	// Owned is true when a cluster of that name is gone that may have left objects behind,
	// and the namespace was its own.
	Owned bool
	// Now is the time of the decision.
	Now time.Time
}

// lookAgain is the polling interval for resources that are not watched.
const lookAgain = 5 * time.Second

// catchUp is how long to wait for caches that are behind, unless an event arrives first.
const catchUp = time.Second

// Decide is pure: it deletes the next objects, or drops the finalizer when none are left.
func Decide(s State) reconcile.Plan {
	const finalizer = clusterv1.FinalizerResourceCleanup
	plan, remaining := nextStep(s)
	if s.Cluster == nil {
		if !s.Clean || !s.Owned {
			return reconcile.Plan{}
		}
		return plan
	}
	mc, held := s.Cluster.DeepCopy(), slices.Contains(s.Cluster.Finalizers, finalizer)
	released := slices.DeleteFunc(slices.Clone(mc.Finalizers), func(f string) bool { return f == finalizer })
	switch {
	case !s.Clean && !held:
		return reconcile.Plan{}
	case !s.Clean:
		mc.Finalizers = released
		return reconcile.Plan{Object: mc}
	case mc.DeletionTimestamp == nil:
		if !held {
			mc.Finalizers = append(mc.Finalizers, finalizer)
		}
		return reconcile.Plan{Object: mc}
	case !held:
		// Others hold it: what was created for it in the meantime must not block them.
		return plan
	}
	plan.Object = mc
	plan.OnFailure = &metav1.Condition{
		Type: clusterv1.ConditionDeleting, Status: metav1.ConditionFalse, Reason: clusterv1.ReasonDeletingError,
		Message: "What belongs to the cluster cannot be deleted:",
	}
	condition := *plan.OnFailure
	switch {
	case s.Fault != nil:
		condition.Message += " " + s.Fault.Error()
	case remaining == "":
		// The final state is not written: the object goes with its finalizer.
		mc.Finalizers = released
		return plan
	default:
		condition.Reason, condition.Message = clusterv1.ReasonResourceRemaining, remaining
	}
	have := apimeta.FindStatusCondition(mc.Status.Conditions, condition.Type)
	if have == nil || have.Reason != condition.Reason || have.Message != condition.Message {
		reconcile.SetCondition(&mc.Status.Conditions, condition, s.Now)
	}
	return plan
}

// nextStep returns the plan for the first group with objects left, and describes what is left:
// those with the lowest priority are deleted, and the rest waits until they are gone. Both are
// empty when nothing is left.
func nextStep(s State) (plan reconcile.Plan, remaining string) {
	if s.Fault != nil {
		// The caches may not show everything, so the first to delete is unknown.
		return plan, ""
	}
	if s.Behind {
		return reconcile.Plan{RequeueAfter: catchUp}, "looking up what belongs to the cluster"
	}
	at := slices.IndexFunc(s.Groups, func(g Group) bool { return len(g.Items) > 0 })
	if at < 0 {
		return plan, ""
	}
	g := s.Groups[at]
	lowest, pending := maxPriority, 0
	for _, item := range g.Items {
		lowest = min(lowest, priority(item.Priority))
		if item.Deleting {
			pending++
		}
	}
	if !g.Watched {
		plan.RequeueAfter = lookAgain
	}
	for _, item := range g.Items {
		if !item.Deleting && priority(item.Priority) == lowest {
			plan.Writes = append(plan.Writes, reconcile.Remove{Target: reconcile.Target{Resource: g.Resource, Namespace: s.Name, Name: item.Name, UID: item.UID}})
		}
	}
	return plan, fmt.Sprintf("%d %s are left, %d of them wait for their finalizers", len(g.Items), g.Resource.Resource, pending)
}

// isClear reports whether it is certain that nothing is left.
func (s State) isClear() bool { return s.Fault == nil && !s.Behind && isEmpty(s.Groups) }

// isEmpty reports whether no group has objects left.
func isEmpty(groups []Group) bool {
	return !slices.ContainsFunc(groups, func(g Group) bool { return len(g.Items) > 0 })
}

// priority parses the annotation; anything but a number from 0 to 100 is 0.
func priority(annotation string) int {
	n, err := strconv.Atoi(annotation)
	if err != nil || n < 0 || n > maxPriority {
		return 0
	}
	return n
}
