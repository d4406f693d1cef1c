// SPDX-License-Identifier: Apache-2.0

package work

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	workv1alpha1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1alpha1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/cluster"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

// describeWork describes the state of a work, which may be nil, whose condition kind is not True.
func describeWork(u *unstructured.Unstructured, kind string) string {
	switch {
	case u == nil:
		return "there is no such work yet"
	case u.GetDeletionTimestamp() != nil:
		return "its agent removes the objects"
	case !isObserved(u, workv1.ConditionApplied):
		return "the agent has not answered"
	}
	if b := blockerOf(u); b != nil {
		return b.Cause
	}
	return kind + " is not True"
}

// ownerOf returns what created a work; "" for a user.
func ownerOf(u metav1.Object) string {
	labels := u.GetLabels()
	if set := labels[workv1alpha1.LabelManifestWorkReplicaSet]; set != "" {
		return "replicaset " + strings.Replace(set, ".", "/", 1)
	}
	if addon := labels[clusterv1.LabelAddOnName]; addon != "" {
		return "addon " + addon
	}
	for _, ref := range u.GetOwnerReferences() {
		return strings.ToLower(ref.Kind) + " " + ref.Name
	}
	return ""
}

// isObserved reports whether a condition is about the current spec.
func isObserved(u *unstructured.Unstructured, kind string) bool {
	c := apimeta.FindStatusCondition(fleet.ConditionsOf(u), kind)
	return c != nil && c.ObservedGeneration >= u.GetGeneration()
}

// isCurrent reports whether a condition is True for the current spec.
func isCurrent(u *unstructured.Unstructured, kind string) bool {
	return isObserved(u, kind) && fleet.ConditionTrue(u, kind)
}

// blockerOf returns which object of a work is in trouble.
func blockerOf(u *unstructured.Unstructured) *fleet.Blocker {
	w, err := typed.FromUnstructured[workv1.ManifestWork](u)
	if err != nil {
		return nil
	}
	for _, kind := range []string{workv1.ConditionApplied, workv1.ConditionAvailable} {
		for _, m := range w.Status.ResourceStatus.Manifests {
			if c := apimeta.FindStatusCondition(m.Conditions, kind); c != nil && c.Status != metav1.ConditionTrue {
				return &fleet.Blocker{Cause: fmt.Sprintf("%s: %s=%s: %s", objectOf(m), c.Type, c.Status, fleet.OneLine(c.Message)),
					Since: c.LastTransitionTime.Time}
			}
		}
	}
	return nil
}

// objectOf names the object of a report: kind/name.
func objectOf(m workv1.ManifestCondition) string {
	return strings.ToLower(m.ResourceMeta.Kind) + "/" + m.ResourceMeta.Name
}

// Departures explain what holds up works that are being deleted. Each cluster is read once.
type Departures struct {
	// Hub is where the works are.
	Hub      *fleet.Cluster
	clusters map[string]departure
}

// departure is what the hub knows of the cluster of such a work.
type departure struct {
	missing, silent bool
}

// Blocker returns what holds up a work; nil when it is not being deleted, or u is nil.
func (d *Departures) Blocker(ctx context.Context, u *unstructured.Unstructured) *fleet.Blocker {
	if u == nil || u.GetDeletionTimestamp() == nil {
		return nil
	}
	cluster, since := u.GetNamespace(), u.GetDeletionTimestamp().Time
	finalizers := strings.Join(u.GetFinalizers(), ", ")
	if !slices.Contains(u.GetFinalizers(), workv1.FinalizerManifestWork) {
		return &fleet.Blocker{Cause: "finalizers of others hold it: " + finalizers, Since: since}
	}
	force := DeleteByForce.On(d.Hub, "work", u.GetName(), "cluster", cluster)
	switch state := d.of(ctx, cluster); {
	case state.missing:
		return &fleet.Blocker{Cause: "the finalizer " + workv1.FinalizerManifestWork + " is held by the agent of " + cluster + ", and there is no such cluster",
			Since: since, Fix: force}
	case state.silent:
		return &fleet.Blocker{Cause: "the agent of " + cluster + " removes the objects, and it does not report", Since: since, Fix: force}
	}
	if b := blockerOf(u); b != nil {
		return b
	}
	return &fleet.Blocker{Cause: "the agent of " + cluster + " is still removing the objects (finalizer " + finalizers + ")", Since: since,
		Fix: WaitLonger.With()}
}

func (d *Departures) of(ctx context.Context, name string) departure {
	if have, ok := d.clusters[name]; ok {
		return have
	}
	mc, err := typed.Get[clusterv1.ManagedCluster](ctx, d.Hub.Client, fleet.ManagedClusters, "", name)
	state := departure{missing: apierrors.IsNotFound(err), silent: err == nil && !cluster.Alive(mc)}
	if d.clusters == nil {
		d.clusters = map[string]departure{}
	}
	d.clusters[name] = state
	return state
}
