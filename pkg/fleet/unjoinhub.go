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
	if u.Force || u.KeepWorks {
		if err := u.releaseWorks(ctx); err != nil {
			return err
		}
	}
	err = await.Objects(ctx, await.Query{Client: u.Hub.Client, Resource: managedClusters, Name: u.Name, Clock: u.common.Clock},
		func(items []*unstructured.Unstructured) (bool, error) {
			if len(items) == 0 || items[0].GetUID() != u.mc.UID {
				return true, nil
			}
			u.detail(conditionText(conditionsOf(items[0]), clusterv1.ConditionDeleting))
			return false, nil
		})
	if err != nil {
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

// deletionBlocker tells what keeps a ManagedCluster.
func (u *unjoin) deletionBlocker(ctx context.Context) *blocker {
	mc, err := typed.Get[clusterv1.ManagedCluster](ctx, u.Hub.Client, managedClusters, "", u.Name)
	if err != nil {
		return &blocker{cause: oneLine(err.Error())}
	}
	fix := fmt.Sprintf("kubectl ocm unjoin %s --hub-context %s --force      when its agent no longer runs", u.Name, shellWord(u.Hub.Context))
	if c := apimeta.FindStatusCondition(mc.Status.Conditions, clusterv1.ConditionDeleting); c != nil {
		return blockedBy(c, fix)
	}
	return &blocker{cause: "finalizers: " + strings.Join(mc.Finalizers, ", "), fix: fix}
}

// releaseWorks takes the agent's finalizer off the works of the cluster, which
// no agent will take off any more.
func (u *unjoin) releaseWorks(ctx context.Context) error {
	if !u.KeepWorks && u.agent != nil && alive(u.mc) {
		return nil
	}
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
		u.note("namespace "+u.Name, Warned, "stays: it was not made for the cluster")
		return nil
	}
	foreign, err := u.foreignObjects(ctx)
	if err != nil {
		return err
	}
	if len(foreign) > 0 {
		u.note("namespace "+u.Name, Warned, "stays: it holds "+strings.Join(foreign, ", "))
		return nil
	}
	if err := remove(ctx, u.Hub, ns); err != nil {
		return explain("deleting namespace "+u.Name, u.Hub, err)
	}
	u.result.Items = append(u.result.Items, Change{Object: reference(ns), Action: Deleted})
	return nil
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
