// SPDX-License-Identifier: Apache-2.0

package addon

import (
	"context"
	"slices"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/naming"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/write"
)

// Find returns which add-ons are on which of the clusters, as "NAME on CLUSTER": what Disable
// would remove. It changes nothing.
func Find(ctx context.Context, o Options) ([]string, error) {
	ctx, cancel, _ := o.Begin(ctx)
	defer cancel()
	clusters, err := o.Targets.Resolve(ctx, o.Hub)
	if err != nil {
		return nil, err
	}
	items, err := fleet.ListAll(ctx, o.Hub, fleet.Query{Resource: fleet.ClusterAddOns})
	if err != nil {
		return nil, fleet.Explain("listing managedclusteraddons", o.Hub, err)
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

// Disable removes add-ons from clusters. Where an install strategy would bring one back, the
// cluster is first excluded from it by an annotation of the ManagedCluster; Enable reverts
// that. With Wait it returns when the add-ons are gone. An add-on that does not exist is
// unchanged. The error is of kind Partial when only some failed.
func Disable(ctx context.Context, o Options) (fleet.ClusterChanges, error) {
	ctx, cancel, r := o.Begin(ctx)
	defer cancel()
	c := &change{Options: o, run: r}
	pairs, err := c.gather(ctx, false)
	if err != nil {
		return fleet.ClusterChanges{}, err
	}
	present, err := fleet.ListAll(ctx, o.Hub, fleet.Query{Resource: fleet.ClusterAddOns})
	if err != nil {
		return fleet.ClusterChanges{}, fleet.Explain("listing managedclusteraddons", o.Hub, err)
	}
	live := map[Pair]*unstructured.Unstructured{}
	for i := range present {
		live[Pair{present[i].GetName(), present[i].GetNamespace()}] = &present[i]
	}
	for _, name := range o.Names {
		if !slices.ContainsFunc(present, func(u unstructured.Unstructured) bool { return u.GetName() == name }) && c.addOns[name] == nil {
			return fleet.ClusterChanges{}, naming.NoAddOn(name, o.Hub)
		}
		if a := c.addOns[name]; a != nil && !ManagedByHub(a) {
			c.warn("the add-on %s installs itself: its own controller may bring it back", name)
		}
	}
	return c.each(pairs, func(p Pair) (fleet.Change, error) { return c.disable(ctx, p, live[p]) })
}

func (c *change) disable(ctx context.Context, p Pair, live *unstructured.Unstructured) (fleet.Change, error) {
	change := fleet.Change{Object: managedAddOn(p), Action: fleet.Unchanged}
	// Clusters given by name stay without the add-on even if a placement selects them later;
	// others are excluded only where it would come back.
	if isInstalledByPlacements(c.addOns[p.AddOn]) && (live != nil || c.selected[p.AddOn][p.Cluster] || slices.Contains(c.Targets.Clusters, p.Cluster)) {
		excluded, err := c.annotate(ctx, p, "true")
		if err != nil {
			return fleet.Change{}, err
		}
		if excluded {
			change.Action = fleet.Configured
		}
	}
	if live == nil {
		return change, nil
	}
	change.Action, change.Live = fleet.Deleted, write.Clean(live)
	if c.Reads() {
		return change, nil
	}
	if live.GetDeletionTimestamp() == nil {
		if err := fleet.Remove(ctx, c.Hub, live); err != nil {
			return fleet.Change{}, fleet.Explain("deleting "+fleet.Describe(live), c.Hub, err)
		}
	}
	if !c.Wait {
		return change, nil
	}
	return change, c.awaitGone(ctx, live)
}

// awaitGone waits until exactly this add-on object is gone.
func (c *change) awaitGone(ctx context.Context, live *unstructured.Unstructured) error {
	var last *unstructured.Unstructured
	at := c.run.Place(live.GetName() + " on " + live.GetNamespace())
	held := func() string { return "held by " + strings.Join(last.GetFinalizers(), ", ") }
	q := await.Query{Client: c.Hub.Client, Resource: fleet.ClusterAddOns, Namespace: live.GetNamespace(), Name: live.GetName(), Clock: c.run.Given.Clock}
	err := await.Gone(ctx, q, live.GetUID(), func(u *unstructured.Unstructured) {
		last = u
		at.See(held())
	})
	return c.run.TimedOut(ctx, at.End(err, "gone"), fleet.Describe(live)+" to be gone", func(context.Context) *fleet.Blocker {
		if last == nil || last.GetDeletionTimestamp() == nil {
			return nil
		}
		cause := held()
		if hook := apimeta.FindStatusCondition(fleet.ConditionsOf(last), addonv1alpha1.ConditionHookManifestCompleted); hook != nil &&
			hook.Status != metav1.ConditionTrue {
			cause = "its hook has not completed (" + fleet.OneLine(hook.Message) + "); " + cause
		}
		return &fleet.Blocker{Cause: cause, Since: last.GetDeletionTimestamp().Time, Fix: ShowHook.On(c.Hub, "cluster", last.GetNamespace())}
	})
}
