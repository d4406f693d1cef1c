// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1alpha1"
	operatorv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/operator/v1"
	workv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

var replicaSets = workv1alpha1.GroupVersion.WithResource("manifestworkreplicasets")

// gateReplicaSet is the feature gate of the hub that serves sets of works.
const gateReplicaSet = "ManifestWorkReplicaSet"

// rollouts are the words for the strategies of a rollout.
var rollouts = map[string]clusterv1alpha1.RolloutType{
	"": clusterv1alpha1.RolloutTypeAll, "all": clusterv1alpha1.RolloutTypeAll,
	"progressive": clusterv1alpha1.RolloutTypeProgressive, "per-group": clusterv1alpha1.RolloutTypeProgressivePerGroup,
}

// BySet tells whether the clusters are those of one placement, and the hub keeps
// works on what a placement selects by itself: then ApplyWorkSet is the way.
// Otherwise a work on each cluster that is selected now is. A rollout needs the
// former and is refused without it.
func BySet(ctx context.Context, o WorkOptions) (bool, error) {
	t := o.Targets
	t.Placement = ""
	if o.Targets.Placement == "" || !t.Empty() {
		return false, o.needsSet("")
	}
	cm, err := typed.Get[operatorv1.ClusterManager](ctx, o.Hub.Client, clusterManagers, "", operatorv1.DefaultClusterManagerName)
	switch {
	case err == nil && !gateOn(cm, gateReplicaSet):
		return false, o.needsSet("kubectl ocm hub init --feature-gates " + gateReplicaSet + "=true" + o.Hub.flag())
	case err != nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err):
		return false, explain("reading the ClusterManager", o.Hub, err)
	}
	namespace, _, _ := strings.Cut(o.Targets.Placement, "/")
	_, err = o.Hub.Client.Resource(replicaSets).Namespace(namespace).List(ctx, metav1.ListOptions{Limit: 1})
	if apierrors.IsNotFound(err) {
		return false, o.needsSet(o.Hub.notHubFix())
	}
	return err == nil, explain("listing manifestworkreplicasets", o.Hub, err)
}

// needsSet refuses a rollout where works are written one by one.
func (o *WorkOptions) needsSet(fix string) error {
	switch {
	case o.Rollout == "":
		return nil
	case fix == "":
		return usage("a rollout needs a placement, and nothing beside it", "the hub rolls out to what a placement selects", "choose the clusters by --placement NAMESPACE/NAME alone")
	}
	return refused("the hub does not roll out works", "its feature gate "+gateReplicaSet+" is off", fix)
}

func gateOn(cm *operatorv1.ClusterManager, name string) bool {
	if cm.Spec.WorkConfiguration == nil {
		return false
	}
	for _, g := range cm.Spec.WorkConfiguration.FeatureGates {
		if g.Feature == name {
			return g.Mode == operatorv1.FeatureGateModeTypeEnable
		}
	}
	return false
}

// ApplyWorkSet creates or updates a ManifestWorkReplicaSet in the namespace of
// the placement. One that exists keeps its placements, and their rollout unless
// another is asked for; it must be for the placement already. With Wait it returns when every cluster has succeeded.
func ApplyWorkSet(ctx context.Context, o WorkOptions) (Change, error) {
	ctx, cancel, r := o.begin(ctx)
	defer cancel()
	if err := checkWorkName(o.Name); err != nil {
		return Change{}, err
	}
	if err := o.checkSpec(); err != nil {
		return Change{}, err
	}
	clusters := map[string]bool{}
	if err := o.Targets.decided(ctx, o.Hub, clusters); err != nil {
		return Change{}, err
	}
	if err := o.noSingleWorks(ctx, clusters); err != nil {
		return Change{}, err
	}
	u, change, err := o.applySet(ctx, r)
	if err != nil {
		return change, err
	}
	if !o.Wait || o.reads() {
		return change, nil
	}
	return change, o.awaitRolledOut(ctx, r, u)
}

// applySet writes the set as it follows from the one that is there. What is sent
// holds the whole list of placements, so it says which version it was decided
// on: a placement that somebody adds in between is read and kept.
func (o *WorkOptions) applySet(ctx context.Context, r *run) (u *unstructured.Unstructured, change Change, err error) {
	err = again(func() error {
		u = o.set()
		live, err := r.live(ctx, o.Hub, u)
		if err != nil {
			return explain("reading "+describe(u), o.Hub, err)
		}
		version := notThere
		if live != nil {
			if err := o.keepPlacements(u, live); err != nil {
				return err
			}
			version = live.GetResourceVersion()
		}
		if !o.reads() {
			u.SetResourceVersion(version)
		}
		change, err = r.applyOne(ctx, o.Hub, u)
		return err
	})
	return u, change, explain("applying "+describe(u), o.Hub, err)
}

// set is the ManifestWorkReplicaSet.
func (o *WorkOptions) set() *unstructured.Unstructured {
	namespace, placement, _ := strings.Cut(o.Targets.Placement, "/")
	ref := map[string]any{"name": placement}
	if o.Rollout != "" {
		ref["rolloutStrategy"] = o.strategy()
	}
	u := named(workv1alpha1.GroupVersion.WithKind("ManifestWorkReplicaSet"), namespace, o.Name)
	u.Object["spec"] = map[string]any{"placementRefs": []any{ref}, "manifestWorkTemplate": o.spec()}
	return u
}

// noSingleWorks refuses a set beside works of its name that were sent one by one
// to clusters of the placement: they hold the objects that the set is to have.
func (o *WorkOptions) noSingleWorks(ctx context.Context, clusters map[string]bool) error {
	items, err := listAll(ctx, o.Hub, query{resource: manifestWorks, fields: "metadata.name=" + o.Name})
	if err != nil {
		return explain("listing manifestworks", o.Hub, err)
	}
	var on []string
	for i := range items {
		if cluster := items[i].GetNamespace(); clusters[cluster] && ownerOf(&items[i]) == "" {
			on = append(on, cluster)
		}
	}
	if len(on) == 0 {
		return nil
	}
	slices.Sort(on)
	where := strings.Join(on, ",")
	return refused(fmt.Sprintf("%s named %s already on clusters of placement %s: %s", areMany(len(on), "work"), o.Name, o.Targets.Placement, strings.Join(on, ", ")),
		"what an older work declares holds, so the set would never roll out",
		fmt.Sprintf("kubectl ocm work delete %s -c %s --orphan%s      objects stay; then run this again", o.Name, where, o.Hub.flag()))
}

// keepPlacements gives u the placements of the set that is there. Only a rollout
// that was asked for changes, and only that of the placement that was named. Of a
// rollout of the same type, limits that no flag names stay.
func (o *WorkOptions) keepPlacements(u, live *unstructured.Unstructured) error {
	if live.GetDeletionTimestamp() != nil {
		return beingDeleted(live)
	}
	_, placement, _ := strings.Cut(o.Targets.Placement, "/")
	if have := placementsOf(live); !slices.Contains(have, placement) {
		return refused(describe(live)+" is not for placement "+o.Targets.Placement, "its placements are "+strings.Join(have, ", "),
			fmt.Sprintf("use another name, or add the placement to spec.placementRefs: kubectl edit manifestworkreplicasets %s -n %s%s", live.GetName(), live.GetNamespace(), o.Hub.flag()))
	}
	refs, _, _ := unstructured.NestedSlice(live.Object, "spec", "placementRefs") // a copy
	for _, ref := range refs {
		if m, ok := ref.(map[string]any); ok && m["name"] == placement && o.Rollout != "" {
			wanted := o.strategy()
			if old, ok := m["rolloutStrategy"].(map[string]any); ok && old["type"] == wanted["type"] {
				wanted = overlay(old, wanted)
			}
			m["rolloutStrategy"] = wanted
		}
	}
	return unstructured.SetNestedSlice(u.Object, refs, "spec", "placementRefs")
}

func (o *WorkOptions) strategy() map[string]any {
	kind := rollouts[o.Rollout]
	out := map[string]any{"type": string(kind)}
	switch kind {
	case clusterv1alpha1.RolloutTypeProgressive:
		progressive := map[string]any{}
		if n, err := strconv.ParseInt(o.MaxConcurrency, 10, 32); err == nil {
			progressive["maxConcurrency"] = n
		} else if o.MaxConcurrency != "" {
			progressive["maxConcurrency"] = o.MaxConcurrency
		}
		out["progressive"] = progressive
	case clusterv1alpha1.RolloutTypeProgressivePerGroup:
		out["progressivePerGroup"] = map[string]any{}
	}
	return out
}

func (o *WorkOptions) awaitRolledOut(ctx context.Context, r *run, u *unstructured.Unstructured) error {
	var last *unstructured.Unstructured
	p := r.place("manifestworkreplicaset/" + u.GetName())
	err := await.Objects(ctx, await.Query{Client: o.Hub.Client, Resource: replicaSets, Namespace: u.GetNamespace(), Name: u.GetName(), Clock: r.common.Clock},
		func(items []*unstructured.Unstructured) (bool, error) {
			if len(items) == 0 {
				return false, &Error{Message: describe(u) + " was deleted while it was waited for", Fix: "run this again"}
			}
			last = items[0]
			if current(last, workv1alpha1.ConditionPlacementRolledOut) {
				return true, nil
			}
			p.see(setBlocker(last, o.Hub).cause)
			return false, nil
		})
	return r.timedOut(ctx, p.end(err, "rolled out"), "manifestworkreplicaset/"+u.GetName()+" in "+u.GetNamespace(), func(context.Context) *blocker {
		return setBlocker(last, o.Hub)
	})
}

// setBlocker tells what a rollout hangs on.
func setBlocker(u *unstructured.Unstructured, hub *Cluster) *blocker {
	if u == nil || !observed(u, workv1alpha1.ConditionPlacementVerified) {
		return &blocker{cause: "the hub has not looked at it", fix: "kubectl ocm hub status" + hub.flag()}
	}
	conditions := conditionsOf(u)
	for _, kind := range []string{workv1alpha1.ConditionPlacementVerified, workv1alpha1.ConditionPlacementRolledOut} {
		if c := apimeta.FindStatusCondition(conditions, kind); c != nil && c.Status != metav1.ConditionTrue {
			return blockedBy(c, fmt.Sprintf("kubectl ocm work list --placement %s/%s%s", u.GetNamespace(), placementsOf(u)[0], hub.flag()))
		}
	}
	return nil
}

// placementsOf are the placements of a set, at least an empty name.
func placementsOf(u *unstructured.Unstructured) []string {
	refs, _, _ := unstructured.NestedSlice(u.Object, "spec", "placementRefs")
	var out []string
	for _, ref := range refs {
		if m, ok := ref.(map[string]any); ok {
			name, _, _ := unstructured.NestedString(m, "name")
			out = append(out, name)
		}
	}
	if len(out) == 0 {
		return []string{""}
	}
	return out
}
