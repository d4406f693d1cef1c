// SPDX-License-Identifier: Apache-2.0

package work

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
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/placement"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/write"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// gateReplicaSet is the feature gate of the hub that serves sets of works.
const gateReplicaSet = "ManifestWorkReplicaSet"

// rollouts are the names of the rollout strategies.
var rollouts = map[string]clusterv1alpha1.RolloutType{
	"": clusterv1alpha1.RolloutTypeAll, "all": clusterv1alpha1.RolloutTypeAll,
	"progressive": clusterv1alpha1.RolloutTypeProgressive, "per-group": clusterv1alpha1.RolloutTypeProgressivePerGroup,
}

// BySet reports whether to use ApplySet: the clusters are those of one placement, and the hub
// itself keeps works on what a placement selects. Otherwise each cluster that is selected now
// gets a work. A rollout requires a set and is refused without one.
func BySet(ctx context.Context, o Options) (bool, error) {
	t := o.Targets
	t.Placement = ""
	if o.Targets.Placement == "" || !t.Empty() {
		return false, o.refuseRollout(nil)
	}
	cm, err := typed.Get[operatorv1.ClusterManager](ctx, o.Hub.Client, fleet.ClusterManagers, "", operatorv1.DefaultClusterManagerName)
	switch {
	case err == nil && !servesSets(cm):
		return false, o.refuseRollout(OpenGate.On(o.Hub, "gate", gateReplicaSet))
	case err != nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err):
		return false, fleet.Explain("reading the ClusterManager", o.Hub, err)
	}
	namespace, _, _ := strings.Cut(o.Targets.Placement, "/")
	_, err = o.Hub.Client.Resource(fleet.ReplicaSets).Namespace(namespace).List(ctx, metav1.ListOptions{Limit: 1})
	if apierrors.IsNotFound(err) {
		return false, o.refuseRollout(fleet.ChooseHub.On(o.Hub))
	}
	return err == nil, fleet.Explain("listing manifestworkreplicasets", o.Hub, err)
}

// refuseRollout refuses a rollout where works are written one by one.
func (o *Options) refuseRollout(fix fleet.Fix) error {
	switch {
	case o.Rollout == "":
		return nil
	case fix == nil:
		return fleet.Misuse("a rollout needs a placement, and nothing beside it", "the hub rolls out to what a placement selects", PlacementAlone.With())
	}
	return fleet.Refuse("the hub does not roll out works", "its feature gate "+gateReplicaSet+" is off", fix)
}

func servesSets(cm *operatorv1.ClusterManager) bool {
	on := operatorv1.FeatureGate{Feature: gateReplicaSet, Mode: operatorv1.FeatureGateModeTypeEnable}
	return cm.Spec.WorkConfiguration != nil && slices.Contains(cm.Spec.WorkConfiguration.FeatureGates, on)
}

// ApplySet creates or updates a ManifestWorkReplicaSet in the namespace of the placement. An
// existing one keeps its placements, and their rollout unless another is given; it must
// already be for the placement. With Wait it returns when every cluster has succeeded.
func ApplySet(ctx context.Context, o Options) (fleet.Change, error) {
	ctx, cancel, r := o.Begin(ctx)
	defer cancel()
	if err := o.check(); err != nil {
		return fleet.Change{}, err
	}
	clusters := map[string]bool{}
	if err := o.Targets.Decided(ctx, o.Hub, clusters); err != nil {
		return fleet.Change{}, err
	}
	if err := o.checkSingleWorks(ctx, clusters); err != nil {
		return fleet.Change{}, err
	}
	u, change, err := o.applySet(ctx, r)
	if err != nil {
		return change, err
	}
	if !o.Wait || o.Reads() {
		return change, nil
	}
	return change, o.awaitRolledOut(ctx, r, u)
}

// applySet writes the set based on the live one. The request contains the whole list of
// placements, so it carries the resource version: a placement that is added concurrently is
// read and kept.
func (o *Options) applySet(ctx context.Context, r *fleet.Run) (u *unstructured.Unstructured, change fleet.Change, err error) {
	err = write.Again(func() error {
		u = o.replicaSet()
		live, err := write.Live(ctx, o.Hub, u)
		if err != nil {
			return fleet.Explain("reading "+fleet.Describe(u), o.Hub, err)
		}
		version := write.NotThere
		if live != nil {
			if err := o.keepPlacements(u, live); err != nil {
				return err
			}
			version = live.GetResourceVersion()
		}
		if !o.Reads() {
			u.SetResourceVersion(version)
		}
		change, err = write.One(ctx, r, o.Hub, u)
		return err
	})
	return u, change, fleet.Explain("applying "+fleet.Describe(u), o.Hub, err)
}

// replicaSet returns the ManifestWorkReplicaSet.
func (o *Options) replicaSet() *unstructured.Unstructured {
	namespace, placement, _ := strings.Cut(o.Targets.Placement, "/")
	ref := map[string]any{"name": placement}
	if o.Rollout != "" {
		ref["rolloutStrategy"] = o.strategy()
	}
	u := fleet.Named(workv1alpha1.GroupVersion.WithKind("ManifestWorkReplicaSet"), namespace, o.Name)
	u.Object["spec"] = map[string]any{"placementRefs": []any{ref}, "manifestWorkTemplate": o.spec()}
	return u
}

// checkSingleWorks refuses a set next to works of its name that were sent one by one to clusters
// of the placement: they hold the objects that the set is to have.
func (o *Options) checkSingleWorks(ctx context.Context, clusters map[string]bool) error {
	items, err := fleet.ListAll(ctx, o.Hub, fleet.Query{Resource: fleet.ManifestWorks, Fields: "metadata.name=" + o.Name})
	if err != nil {
		return fleet.Explain("listing manifestworks", o.Hub, err)
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
	return fleet.Refuse(fmt.Sprintf("%s named %s already on clusters of placement %s: %s", fleet.AreMany(len(on), "work"), o.Name, o.Targets.Placement,
		strings.Join(on, ", ")),
		"the older work's declaration wins, so the set would never roll out",
		DeleteOlder.On(o.Hub, "work", o.Name, "clusters", strings.Join(on, ",")))
}

// keepPlacements gives u the placements of the live set. Only a rollout that was given
// changes, and only for the given placement. If the rollout type stays the same, limits for
// which there is no option stay.
func (o *Options) keepPlacements(u, live *unstructured.Unstructured) error {
	if live.GetDeletionTimestamp() != nil {
		return fleet.BeingDeleted(live)
	}
	_, name, _ := strings.Cut(o.Targets.Placement, "/")
	if have := placement.PlacementsOf(live); !slices.Contains(have, name) {
		return fleet.Refuse(fleet.Describe(live)+" is not for placement "+o.Targets.Placement, "its placements are "+strings.Join(have, ", "),
			AddPlacement.On(o.Hub, "name", live.GetName(), "namespace", live.GetNamespace()))
	}
	refs, _, _ := unstructured.NestedSlice(live.Object, "spec", "placementRefs") // a copy
	for _, ref := range refs {
		if m, ok := ref.(map[string]any); ok && m["name"] == name && o.Rollout != "" {
			wanted := o.strategy()
			if old, ok := m["rolloutStrategy"].(map[string]any); ok && old["type"] == wanted["type"] {
				wanted = write.Overlay(old, wanted)
			}
			m["rolloutStrategy"] = wanted
		}
	}
	return unstructured.SetNestedSlice(u.Object, refs, "spec", "placementRefs")
}

func (o *Options) strategy() map[string]any {
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

func (o *Options) awaitRolledOut(ctx context.Context, r *fleet.Run, u *unstructured.Unstructured) error {
	var last *unstructured.Unstructured
	p := r.Place("manifestworkreplicaset/" + u.GetName())
	err := await.Objects(ctx, await.Query{Client: o.Hub.Client, Resource: fleet.ReplicaSets, Namespace: u.GetNamespace(), Name: u.GetName(), Clock: r.Given.Clock},
		func(items []*unstructured.Unstructured) (bool, error) {
			if len(items) == 0 {
				return false, &fleet.Error{Message: fleet.Describe(u) + " was deleted during the wait", Fix: fleet.Advice("run this again")}
			}
			last = items[0]
			if isCurrent(last, workv1alpha1.ConditionPlacementRolledOut) {
				return true, nil
			}
			p.See(setBlocker(last, o.Hub).Cause)
			return false, nil
		})
	return r.TimedOut(ctx, p.End(err, "rolled out"), "manifestworkreplicaset/"+u.GetName()+" in "+u.GetNamespace(), func(context.Context) *fleet.Blocker {
		return setBlocker(last, o.Hub)
	})
}

// setBlocker returns what holds up a rollout.
func setBlocker(u *unstructured.Unstructured, hub *fleet.Cluster) *fleet.Blocker {
	if u == nil || !isObserved(u, workv1alpha1.ConditionPlacementVerified) {
		return &fleet.Blocker{Cause: "the hub has not processed it", Fix: fleet.HubStatus.On(hub)}
	}
	conditions := fleet.ConditionsOf(u)
	for _, kind := range []string{workv1alpha1.ConditionPlacementVerified, workv1alpha1.ConditionPlacementRolledOut} {
		if c := apimeta.FindStatusCondition(conditions, kind); c != nil && c.Status != metav1.ConditionTrue {
			return fleet.BlockedBy(c, ListOfPlacement.On(hub, "placement", u.GetNamespace()+"/"+placement.PlacementsOf(u)[0]))
		}
	}
	return nil
}
