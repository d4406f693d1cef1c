// SPDX-License-Identifier: Apache-2.0

package unjoin

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	addonv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/addon/v1alpha1"
	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/await"
)

// hubContent is what a cluster has on the hub, in the order of removal, with the finalizers that
// nothing removes when the agent is dead: the agent's own, and those of add-ons whose removal
// the agent would have to report. Other finalizers belong to programs that may be alive.
var hubContent = []struct {
	resource   schema.GroupVersionResource
	finalizers []string
}{
	{fleet.ClusterAddOns, []string{addonv1alpha1.FinalizerPreDelete, addonv1alpha1.FinalizerHostingPreDelete, addonv1alpha1.FinalizerHostingManifests}},
	{fleet.ManifestWorks, []string{workv1.FinalizerManifestWork}},
}

// releaseAll does what a dead agent can no longer do: add-ons are released first, then works,
// each starting with those of the lowest cleanup priority, and the next only when these are
// gone.
func (u *unjoin) releaseAll(ctx context.Context) error {
	for _, kind := range hubContent {
		for {
			items, err := fleet.ListAll(ctx, u.Hub, fleet.Query{Resource: kind.resource, Namespace: u.Name})
			if err != nil {
				return fleet.Explain("listing "+kind.resource.Resource+" of "+u.Name, u.Hub, err)
			}
			if len(items) == 0 {
				break
			}
			if kind.resource == fleet.ManifestWorks {
				u.recordStaying(items)
			}
			if err := u.releaseNext(ctx, kind.resource, items, kind.finalizers); err != nil {
				return err
			}
		}
	}
	return nil
}

// recordStaying records works that are deleted without their agent.
func (u *unjoin) recordStaying(works []unstructured.Unstructured) {
	for _, w := range u.stayingWorks(works) {
		if !slices.ContainsFunc(u.result.Stays, func(have AppliedWork) bool { return have.Work == w.Work }) {
			u.result.Stays = append(u.result.Stays, w)
		}
	}
}

// releaseNext releases the objects of the lowest priority and waits until they
// are gone.
func (u *unjoin) releaseNext(ctx context.Context, resource schema.GroupVersionResource, items []unstructured.Unstructured, finalizers []string) error {
	lowest := slices.MinFunc(items, func(a, b unstructured.Unstructured) int { return cmp.Compare(priority(a), priority(b)) })
	next := map[string]bool{}
	for i := range items {
		item := &items[i]
		if priority(*item) != priority(lowest) {
			continue
		}
		next[string(item.GetUID())] = true
		u.Detail("releasing " + fleet.Describe(item))
		if err := fleet.DropFinalizer(ctx, u.Hub, resource, item, finalizers...); err != nil {
			return fleet.Explain("releasing "+fleet.Describe(item), u.Hub, err)
		}
	}
	var left []string
	q := await.Query{Client: u.Hub.Client, Resource: resource, Namespace: u.Name, Clock: u.Given.Clock}
	err := await.Objects(ctx, q, func(items []*unstructured.Unstructured) (bool, error) {
		left = nil
		for _, item := range items {
			if next[string(item.GetUID())] {
				left = append(left, describeHeld(item))
			}
		}
		if len(left) > 0 {
			u.Detail("waiting for " + fleet.Listed(left))
		}
		return len(left) == 0, nil
	})
	return u.TimedOut(ctx, err, "what "+u.Name+" has on the hub to be gone", func(context.Context) *fleet.Blocker {
		return &fleet.Blocker{Cause: "finalizers of others hold " + fleet.Listed(left),
			Fix: TakeFinalizers.With()}
	})
}

// priority returns the cleanup priority of an object.
func priority(u unstructured.Unstructured) int {
	n, err := strconv.Atoi(u.GetAnnotations()[clusterv1.AnnotationCleanupPriority])
	if err != nil || n < 0 || n > 100 {
		return 0
	}
	return n
}

// describeHolders returns what of the cluster is left on the hub, and what holds it.
func (u *unjoin) describeHolders(ctx context.Context) string {
	var out []string
	for _, kind := range hubContent {
		items, err := fleet.ListAll(ctx, u.Hub, fleet.Query{Resource: kind.resource, Namespace: u.Name})
		if err != nil {
			continue // diagnosis only: report what can be read
		}
		for i := range items {
			if items[i].GetDeletionTimestamp() != nil {
				out = append(out, describeHeld(&items[i]))
			}
		}
	}
	return fleet.Listed(out)
}

// describeHeld returns an object and its finalizers as text.
func describeHeld(u *unstructured.Unstructured) string {
	if len(u.GetFinalizers()) == 0 {
		return fleet.Describe(u)
	}
	return fleet.Describe(u) + " (" + strings.Join(u.GetFinalizers(), ", ") + ")"
}

// removeNamespace deletes the namespace of a cluster on the hub, if it is ours and holds
// nothing of others; otherwise the error names what it holds.
func (u *unjoin) removeNamespace(ctx context.Context) error {
	ns, err := u.Hub.Client.Resource(fleet.Namespaces).Get(ctx, u.Name, fleet.GetOptions)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fleet.Explain("reading namespace "+u.Name, u.Hub, err)
	}
	stays := func(why string) error {
		u.Remark("namespace "+u.Name, "stays"+why)
		return nil
	}
	if ns.GetLabels()[clusterv1.LabelClusterName] != u.Name {
		return stays(": it was not made for the cluster")
	}
	foreign, err := fleet.Foreign(ctx, u.Hub, u.Name, func(o *unstructured.Unstructured) bool {
		return o.GetLabels()[clusterv1.LabelClusterName] == u.Name
	})
	if err != nil {
		return stays(", because its content cannot be listed: " + fleet.OneLine(err.Error()))
	}
	if len(foreign) > 0 {
		return stays(": it holds " + fleet.Listed(foreign))
	}
	if err := fleet.Remove(ctx, u.Hub, ns); err != nil {
		return fleet.Explain("deleting namespace "+u.Name, u.Hub, err)
	}
	u.result.Items = append(u.result.Items, fleet.Change{Object: fleet.Reference(ns), Action: fleet.Deleted})
	u.Detail("waiting for namespace " + u.Name + " to go")
	q := await.Query{Client: u.Hub.Client, Resource: fleet.Namespaces, Name: u.Name, Clock: u.Given.Clock}
	err = await.Objects(ctx, q, func(items []*unstructured.Unstructured) (bool, error) {
		return len(items) == 0 || items[0].GetUID() != ns.GetUID(), nil
	})
	return u.TimedOut(ctx, err, "namespace "+u.Name+" to be gone", func(context.Context) *fleet.Blocker { return nil })
}
