// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"slices"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/await"
)

// FindAddOns returns on which of the clusters the add-ons are, as "NAME on CLUSTER",
// without changing anything: what DisableAddOns would take away.
func FindAddOns(ctx context.Context, o AddOnOptions) ([]string, error) {
	ctx, cancel, _ := o.begin(ctx)
	defer cancel()
	clusters, err := o.Targets.Resolve(ctx, o.Hub)
	if err != nil {
		return nil, err
	}
	items, err := listAll(ctx, o.Hub, query{resource: clusterAddOns})
	if err != nil {
		return nil, explain("listing managedclusteraddons", o.Hub, err)
	}
	var out []string
	for i := range items {
		if name, cluster := items[i].GetName(), items[i].GetNamespace(); slices.Contains(o.Names, name) && slices.Contains(clusters, cluster) {
			out = append(out, name+" on "+cluster)
		}
	}
	slices.Sort(out)
	return out, nil
}

// DisableAddOns takes add-ons from clusters. Where an install strategy would bring one
// back, the cluster is left out of it first, by an annotation of the ManagedCluster;
// EnableAddOns takes that back. With Wait it returns when the add-ons are gone. An
// add-on that is not there is unchanged. The error is of kind Partial when only some
// failed. Contract: addon.md 4.2, 5.7.
func DisableAddOns(ctx context.Context, o AddOnOptions) (WorkResult, error) {
	ctx, cancel, r := o.begin(ctx)
	defer cancel()
	c := &addOnChange{AddOnOptions: o, run: r}
	pairs, err := c.gather(ctx, false)
	if err != nil {
		return WorkResult{}, err
	}
	present, err := listAll(ctx, o.Hub, query{resource: clusterAddOns})
	if err != nil {
		return WorkResult{}, explain("listing managedclusteraddons", o.Hub, err)
	}
	live := map[pair]*unstructured.Unstructured{}
	for i := range present {
		live[pair{present[i].GetName(), present[i].GetNamespace()}] = &present[i]
	}
	for _, name := range o.Names {
		if !slices.ContainsFunc(present, func(u unstructured.Unstructured) bool { return u.GetName() == name }) && c.addOns[name] == nil {
			return WorkResult{}, NoAddOn(name, o.Hub)
		}
		if a := c.addOns[name]; a != nil && !managedByHub(a) {
			c.warn("the add-on %s installs itself: its own controller may bring it back", name)
		}
	}
	return c.each(pairs, func(p pair) (Change, error) { return c.disable(ctx, p, live[p]) })
}

func (c *addOnChange) disable(ctx context.Context, p pair, live *unstructured.Unstructured) (Change, error) {
	change := Change{Object: managedAddOn(p), Action: Unchanged}
	// Clusters that were meant by name stay without it also when a placement selects
	// them later; of others only those where it would come back.
	if byPlacements(c.addOns[p.addOn]) && (live != nil || c.selected[p.addOn][p.cluster] || slices.Contains(c.Targets.Clusters, p.cluster)) {
		excluded, err := c.exclude(ctx, p)
		if err != nil {
			return Change{}, err
		}
		if excluded {
			change.Action = Configured
		}
	}
	if live == nil {
		return change, nil
	}
	change.Action, change.Live = Deleted, clean(live)
	if c.reads() {
		return change, nil
	}
	if live.GetDeletionTimestamp() == nil {
		if err := remove(ctx, c.Hub, live); err != nil {
			return Change{}, explain("deleting "+describe(live), c.Hub, err)
		}
	}
	if !c.Wait {
		return change, nil
	}
	return change, c.awaitGone(ctx, live)
}

// awaitGone waits until exactly this add-on is gone.
func (c *addOnChange) awaitGone(ctx context.Context, live *unstructured.Unstructured) error {
	var last *unstructured.Unstructured
	at := c.run.place(live.GetName() + " on " + live.GetNamespace())
	err := await.Objects(ctx, await.Query{Client: c.Hub.Client, Resource: clusterAddOns, Namespace: live.GetNamespace(), Name: live.GetName(), Clock: c.run.common.Clock},
		func(items []*unstructured.Unstructured) (bool, error) {
			if len(items) == 0 || items[0].GetUID() != live.GetUID() {
				return true, nil
			}
			last = items[0]
			at.see("held by " + strings.Join(last.GetFinalizers(), ", "))
			return false, nil
		})
	return c.run.timedOut(ctx, at.end(err, "gone"), describe(live)+" to be gone", func(context.Context) *blocker {
		if last == nil || last.GetDeletionTimestamp() == nil {
			return nil
		}
		cause := "held by " + strings.Join(last.GetFinalizers(), ", ")
		if hook := apimeta.FindStatusCondition(conditionsOf(last), addonv1alpha1.ConditionHookManifestCompleted); hook != nil && hook.Status != metav1.ConditionTrue {
			cause = "its hook has not run to its end (" + oneLine(hook.Message) + "); " + cause
		}
		return &blocker{cause: cause, since: last.GetDeletionTimestamp().Time, fix: "kubectl ocm work list -c " + last.GetNamespace() + c.Hub.flag() + "      shows the work of the hook"}
	})
}
