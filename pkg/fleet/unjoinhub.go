// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"encoding/json"
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
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// leaveHub deletes the ManagedCluster and waits until it is gone. Its works go
// with it; the agent removes their objects while that lasts.
func (u *unjoin) leaveHub(ctx context.Context) error {
	if u.mc == nil {
		return nil
	}
	u.step("left the hub")
	policy := metav1.DeletePropagationBackground
	err := u.Hub.Client.Resource(managedClusters).Delete(ctx, u.Name, metav1.DeleteOptions{PropagationPolicy: &policy, Preconditions: &metav1.Preconditions{UID: &u.mc.UID}})
	if err != nil && !apierrors.IsNotFound(err) {
		return explain("deleting managedcluster "+u.Name, u.Hub, err)
	}
	if u.KeepWorks {
		if err := u.releaseWorks(ctx); err != nil {
			return err
		}
	}
	if u.Force && !u.agentWorks(ctx) {
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
	if u.Force && !u.KeepWorks {
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
