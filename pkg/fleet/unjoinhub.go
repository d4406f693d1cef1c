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
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
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
	if u.KeepWorks || (u.Force && !u.agentWorks(ctx)) {
		if err := u.releaseWorks(ctx); err != nil {
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
		if err := u.releaseWorks(ctx); err != nil {
			return err
		}
	}
	return await.Objects(ctx, q, gone)
}

// agentWorks tells whether the agent can still do its part: the hub hears it,
// and its pod runs as far as we can look.
func (u *unjoin) agentWorks(ctx context.Context) bool {
	return u.agent != nil && alive(u.mc) && u.agentTrouble(ctx) == nil
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
	fix := fmt.Sprintf("kubectl ocm unjoin %s%s --hub-context %s --force      when its agent no longer runs", u.Name, u.spokeFlag(), ShellWord(u.Hub.Context))
	if b := u.agentTrouble(ctx); b != nil {
		return &blocker{cause: "its agent removes what works have applied, and it does not run: " + b.cause, since: b.since, fix: fix}
	}
	if c := apimeta.FindStatusCondition(mc.Status.Conditions, clusterv1.ConditionDeleting); c != nil {
		return blockedBy(c, fix)
	}
	return &blocker{cause: "finalizers: " + strings.Join(mc.Finalizers, ", "), fix: fix}
}

// spokeFlag names the cluster on a command line.
func (u *unjoin) spokeFlag() string {
	if u.Spoke == nil {
		return " --hub-only"
	}
	return u.Spoke.flag()
}

// releaseWorks takes the agent's finalizer off the works of the cluster, which
// no agent will take off any more.
func (u *unjoin) releaseWorks(ctx context.Context) error {
	for i := range u.works {
		if err := dropFinalizer(ctx, u.Hub, manifestWorks, &u.works[i], workv1.FinalizerManifestWork); err != nil {
			return explain("releasing manifestwork "+u.Name+"/"+u.works[i].GetName(), u.Hub, err)
		}
	}
	return nil
}

// dropFinalizer deletes an object and takes one finalizer off it.
func dropFinalizer(ctx context.Context, c *Cluster, resource schema.GroupVersionResource, u *unstructured.Unstructured, finalizer string) error {
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
		if !slices.Contains(live.GetFinalizers(), finalizer) {
			return nil
		}
		kept := slices.DeleteFunc(live.GetFinalizers(), func(f string) bool { return f == finalizer })
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

// ownKinds are the kinds that a cluster's namespace on the hub holds of ours
// and of Kubernetes' own; anything else in it keeps it.
var ownKinds = []schema.GroupVersionResource{configMaps, secrets, serviceAccounts, pods, coreServices, deployments, roles, roleBindings, leases, manifestWorks, clusterAddOns, placements}

// removeNamespace deletes the namespace of a cluster on the hub, if it is ours
// and holds nothing of anybody else's; else it tells what it holds.
func (u *unjoin) removeNamespace(ctx context.Context) error {
	ns, err := u.Hub.Client.Resource(namespaces).Get(ctx, u.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return explain("reading namespace "+u.Name, u.Hub, err)
	}
	if ns.GetLabels()[clusterv1.LabelClusterName] != u.Name {
		u.remark("namespace "+u.Name, "stays: it was not made for the cluster")
		return nil
	}
	foreign, err := u.foreignObjects(ctx)
	if err != nil {
		return err
	}
	if len(foreign) > 0 {
		u.remark("namespace "+u.Name, "stays: it holds "+strings.Join(foreign, ", "))
		return nil
	}
	if err := remove(ctx, u.Hub, ns); err != nil {
		return explain("deleting namespace "+u.Name, u.Hub, err)
	}
	u.result.Items = append(u.result.Items, Change{Object: reference(ns), Action: Deleted})
	u.detail("waiting for namespace " + u.Name + " to go")
	q := await.Query{Client: u.Hub.Client, Resource: namespaces, Name: u.Name, Clock: u.common.Clock}
	err = await.Objects(ctx, q, func(items []*unstructured.Unstructured) (bool, error) {
		return len(items) == 0 || items[0].GetUID() != ns.GetUID(), nil
	})
	return u.timedOut(ctx, err, "namespace "+u.Name+" to be gone", func(context.Context) *blocker { return nil })
}

// foreignObjects names what the cluster's namespace holds beside our objects and
// those that Kubernetes puts into every namespace.
func (u *unjoin) foreignObjects(ctx context.Context) ([]string, error) {
	var out []string
	for _, resource := range ownKinds {
		items, err := listAll(ctx, u.Hub, query{resource: resource, namespace: u.Name})
		if err != nil {
			return nil, explain("listing "+resource.Resource+" of namespace "+u.Name, u.Hub, err)
		}
		for i := range items {
			item := &items[i]
			ours := item.GetLabels()[clusterv1.LabelClusterName] == u.Name || item.GetDeletionTimestamp() != nil
			standard := (item.GetKind() == "ConfigMap" && item.GetName() == "kube-root-ca.crt") || (item.GetKind() == "ServiceAccount" && item.GetName() == "default")
			if !ours && !standard {
				out = append(out, objectName(item))
			}
		}
	}
	return out, nil
}
