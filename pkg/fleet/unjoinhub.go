// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-ocm/kubectl-ocm/config/agent"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/teardown"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// keepObjects makes the deletion of the works harmless, before anybody deletes
// them.
func (u *unjoin) keepObjects(ctx context.Context) error {
	u.step("works told to leave their objects")
	kept, err := teardown.Keep(ctx, u.Hub.Client, teardown.KeepOptions{Namespace: u.Name, Clock: u.common.Clock, Progress: u.detail})
	switch {
	case errors.Is(err, teardown.ErrNotKept):
		e := refused("the agent of "+u.Name+" is alive and does not confirm that it leaves what works applied; nothing was deleted", oneLine(err.Error()),
			"mend or delete the works that cannot be applied: kubectl ocm work list -c "+u.Name+u.Hub.flag()+"      then run the same command again")
		e.Err = err
		return e
	case err != nil:
		return u.timedOut(ctx, err, "the agent of "+u.Name+" to let go of what works applied", u.deletionBlocker)
	}
	away := slices.ContainsFunc(kept, func(k teardown.KeptCluster) bool { return !k.Confirmed })
	if away && !u.Force {
		return refused("the agent of "+u.Name+" is away and cannot confirm that it leaves what works applied; nothing was deleted",
			"an agent that comes back takes works that are gone for lost, and removes their objects after an hour",
			u.forceLine()+" --keep-works      when it does not come back")
	}
	u.done("")
	return nil
}

// staying tells what of works is on the cluster, by their status.
func (u *unjoin) staying(works []unstructured.Unstructured) []AppliedWork {
	var out []AppliedWork
	for i := range works {
		work, err := typed.FromUnstructured[workv1.ManifestWork](&works[i])
		if err != nil {
			out = append(out, AppliedWork{Work: works[i].GetName()}) // it stays, with whatever it has applied
			continue
		}
		out = append(out, AppliedWork{Work: work.Name, Objects: teardown.AppliedObjects(work)})
	}
	return out
}

// leaveHub deletes the ManagedCluster and waits until it is gone. Its works go
// with it; the agent removes their objects while that lasts, unless they are to
// stay.
func (u *unjoin) leaveHub(ctx context.Context) error {
	if u.mc == nil {
		return nil
	}
	u.step("left the hub")
	if u.KeepWorks {
		u.result.Stays = u.staying(u.works)
	}
	policy := metav1.DeletePropagationBackground
	err := u.Hub.Client.Resource(managedClusters).Delete(ctx, u.Name, metav1.DeleteOptions{PropagationPolicy: &policy, Preconditions: &metav1.Preconditions{UID: &u.mc.UID}})
	if err != nil && !apierrors.IsNotFound(err) {
		return explain("deleting managedcluster "+u.Name, u.Hub, err)
	}
	if !u.agentWorks(ctx) && (u.Force || u.KeepWorks) {
		if err := u.releaseAll(ctx); err != nil {
			return err
		}
	}
	if err = u.awaitLeft(ctx); err != nil {
		return u.timedOut(ctx, err, "managedcluster/"+u.Name+" to be gone", u.deletionBlocker)
	}
	if u.Force {
		if err := u.removeNamespace(ctx); err != nil {
			return err
		}
	}
	u.done(u.Hub.where())
	return nil
}

// awaitLeft waits until the ManagedCluster is gone. With Force the agent may
// take its time, but not the whole of it: then its works are released.
func (u *unjoin) awaitLeft(ctx context.Context) error {
	gone := func(items []*unstructured.Unstructured) (bool, error) {
		if len(items) == 0 || items[0].GetUID() != u.mc.UID {
			return true, nil
		}
		u.detail(conditionText(conditionsOf(items[0]), clusterv1.ConditionDeleting))
		return false, nil
	}
	q := await.Query{Client: u.Hub.Client, Resource: managedClusters, Name: u.Name, Clock: u.common.Clock}
	if u.Force {
		patient, cancel := context.WithTimeout(ctx, agentPatience)
		err := await.Objects(patient, q, gone)
		cancel()
		if err == nil || patient.Err() == nil || ctx.Err() != nil {
			return err
		}
		if err := u.releaseAll(ctx); err != nil {
			return err
		}
	}
	return await.Objects(ctx, q, gone)
}

// agentWorks tells whether the agent can still do its part: the hub hears it,
// and its pod runs as far as we can look.
func (u *unjoin) agentWorks(ctx context.Context) bool {
	return (u.agent != nil || u.Spoke == nil) && alive(u.mc) && u.agentTrouble(ctx) == nil
}

// agentTrouble tells why the agent's pod does not run; nil when it does.
func (u *unjoin) agentTrouble(ctx context.Context) *blocker {
	if u.Spoke == nil {
		return nil
	}
	return stopped(ctx, u.Spoke, u.agentNamespace(), agent.Deployment)
}

// deletionBlocker tells what keeps a ManagedCluster.
func (u *unjoin) deletionBlocker(ctx context.Context) *blocker {
	mc, err := typed.Get[clusterv1.ManagedCluster](ctx, u.Hub.Client, managedClusters, "", u.Name)
	if err != nil {
		return &blocker{cause: oneLine(err.Error())}
	}
	fix := u.forceLine() + "      when its agent no longer runs"
	if u.Force {
		fix = ""
	}
	if b := u.agentTrouble(ctx); b != nil {
		return &blocker{cause: "its agent removes what works have applied, and it does not run: " + b.cause, since: b.since, fix: fix}
	}
	if c := apimeta.FindStatusCondition(mc.Status.Conditions, clusterv1.ConditionDeleting); c != nil {
		b := blockedBy(c, fix)
		if held := u.holders(ctx); held != "" {
			b.cause += "; " + held
		}
		return b
	}
	return &blocker{cause: "finalizers: " + strings.Join(mc.Finalizers, ", "), fix: fix}
}

// forceLine is the command that does it without the agent.
func (u *unjoin) forceLine() string {
	switch {
	case u.HubOnly:
		return fmt.Sprintf("kubectl ocm cluster remove %s%s --force", u.Name, u.Hub.flag())
	case u.Spoke == nil:
		return fmt.Sprintf("kubectl ocm unjoin %s --hub-only%s --force", u.Name, u.hubFlag())
	}
	return fmt.Sprintf("kubectl ocm unjoin %s%s%s --force", u.Name, u.Spoke.flag(), u.hubFlag())
}

// dropFinalizer deletes an object and takes finalizers off it.
func dropFinalizer(ctx context.Context, c *Cluster, resource schema.GroupVersionResource, u *unstructured.Unstructured, finalizers ...string) error {
	client := c.Client.Resource(resource).Namespace(u.GetNamespace())
	if err := remove(ctx, c, u); err != nil {
		return err
	}
	for try := 0; ; try++ {
		live, err := client.Get(ctx, u.GetName(), metav1.GetOptions{})
		if apierrors.IsNotFound(err) || (err == nil && live.GetUID() != u.GetUID()) {
			return nil
		}
		if err != nil {
			return err
		}
		kept := slices.DeleteFunc(live.GetFinalizers(), func(f string) bool { return slices.Contains(finalizers, f) })
		if len(kept) == len(live.GetFinalizers()) {
			return nil
		}
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"finalizers": kept, "uid": live.GetUID(), "resourceVersion": live.GetResourceVersion()}})
		if err != nil {
			return err
		}
		_, err = client.Patch(ctx, u.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: FieldManager})
		if err == nil || apierrors.IsNotFound(err) {
			return nil
		}
		if !apierrors.IsConflict(err) || try == 5 {
			return err
		}
	}
}
