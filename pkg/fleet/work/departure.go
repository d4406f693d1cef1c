// SPDX-License-Identifier: Apache-2.0

package work

import (
	"context"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	clusterv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/cluster/v1"
	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/cluster"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/typed"
)

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

// Blocker returns what holds up a work; nil when it is not being deleted.
func (d *Departures) Blocker(ctx context.Context, u *unstructured.Unstructured) *fleet.Blocker {
	if u.GetDeletionTimestamp() == nil {
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
