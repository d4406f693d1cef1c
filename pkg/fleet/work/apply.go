// SPDX-License-Identifier: Apache-2.0

package work

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1 "github.com/kubectl-ocm/kubectl-ocm/pkg/apis/work/v1"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/await"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/cluster"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/naming"
	"github.com/kubectl-ocm/kubectl-ocm/pkg/fleet/write"
)

// Options say what to send to which clusters.
type Options struct {
	fleet.Common
	// Hub is the hub.
	Hub *fleet.Cluster
	// Name of the work, the same on every cluster.
	Name string
	// Manifests are its objects, as manifest.Read returns them.
	Manifests []*unstructured.Unstructured
	// Targets are the clusters.
	Targets cluster.Targets
	// Orphan leaves the objects on the cluster when the work is deleted.
	Orphan bool
	// UpdateStrategy is one of UpdateStrategies, for all objects; empty means the default,
	// update.
	UpdateStrategy string
	// Feedback are values to read back from the objects, each NAME=JSONPATH.
	Feedback []string
	// Rollout is all, progressive or per-group, for ApplySet; empty means all. MaxConcurrency
	// is how many clusters, or what percentage of them, a progressive rollout changes at a
	// time.
	Rollout, MaxConcurrency string
	// Prune deletes the work from clusters that are no longer targets, where this library has
	// created it. A set does not need it: the hub does it.
	Prune bool
	// Executor is the ServiceAccount, NAMESPACE/NAME, on the cluster with whose rights the
	// objects are applied; empty for the agent itself.
	Executor string
	// Spoke is the one target cluster itself, when it can be reached; nil otherwise.
	Spoke *fleet.Cluster
	// Force changes works that others own, or deletes works whose agent does not.
	Force bool
}

// Apply creates or updates a work on clusters. With Wait it returns when the
// agents have applied it and its objects exist. Clusters are independent; the
// error is of kind Partial when only some failed.
func Apply(ctx context.Context, o Options) (fleet.ClusterChanges, error) {
	ctx, cancel, r := o.Begin(ctx)
	defer cancel()
	names, err := o.clusters(ctx)
	if err != nil {
		return fleet.ClusterChanges{}, err
	}
	result, err := fleet.Each(names, func(name string) (fleet.Change, error) {
		u := named(name, o.Name)
		u.Object["spec"] = o.spec()
		change, err := o.applyTo(ctx, r, u)
		if err != nil || !o.Wait || o.Reads() {
			return change, err
		}
		return change, o.awaitApplied(ctx, r, u)
	})
	if err != nil || !o.Prune {
		return result, err
	}
	return o.prune(ctx, r, names, result)
}

// clusters checks the options and returns the names of the target clusters.
func (o *Options) clusters(ctx context.Context) ([]string, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	return o.Targets.Resolve(ctx, o.Hub)
}

// named returns a work of one cluster without a spec.
func named(cluster, name string) *unstructured.Unstructured {
	return fleet.Named(workv1.GroupVersion.WithKind("ManifestWork"), cluster, name)
}

func (o *Options) applyTo(ctx context.Context, r *fleet.Run, u *unstructured.Unstructured) (fleet.Change, error) {
	live, err := write.Live(ctx, o.Hub, u)
	if err != nil {
		return fleet.Change{}, fleet.Explain("reading "+fleet.Describe(u), o.Hub, err)
	}
	if live != nil {
		switch owner := ownerOf(live); {
		case owner != "" && !o.Force:
			return fleet.Change{}, fleet.Refuse(fleet.Describe(u)+" belongs to "+owner, "its owner would undo the change", TakeOver.With())
		case live.GetDeletionTimestamp() != nil:
			return fleet.Change{}, fleet.BeingDeleted(live)
		}
	}
	change, err := write.One(ctx, r, o.Hub, u)
	return change, fleet.Explain("applying "+fleet.Describe(u), o.Hub, err)
}

// awaitApplied waits until the agent has applied the current spec.
func (o *Options) awaitApplied(ctx context.Context, r *fleet.Run, u *unstructured.Unstructured) error {
	cluster := u.GetNamespace()
	var last *unstructured.Unstructured
	p := r.Place(cluster)
	err := await.Objects(ctx, await.Query{Client: o.Hub.Client, Resource: fleet.ManifestWorks, Namespace: cluster, Name: o.Name, Clock: r.Given.Clock},
		func(items []*unstructured.Unstructured) (bool, error) {
			if len(items) == 0 {
				return false, &fleet.Error{Message: fleet.Describe(u) + " was deleted during the wait", Fix: fleet.Advice("run this again")}
			}
			last = items[0]
			for _, kind := range []string{workv1.ConditionApplied, workv1.ConditionAvailable} {
				if !isCurrent(last, kind) {
					p.See(describeWork(last, kind))
					return false, nil
				}
			}
			return true, nil
		})
	return r.TimedOut(ctx, p.End(err, "available"), "manifestwork/"+o.Name+" on "+cluster, func(context.Context) *fleet.Blocker {
		if last != nil && isObserved(last, workv1.ConditionApplied) {
			if b := blockerOf(last); b != nil {
				return b
			}
		}
		return &fleet.Blocker{Cause: "the agent of " + cluster + " has not answered", Fix: naming.ListClusters.On(o.Hub)}
	})
}
